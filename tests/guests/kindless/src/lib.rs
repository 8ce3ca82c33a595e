//! A sound component that is not a plugin: it exports nothing that the contract names.

wit_bindgen::generate!({
    inline: "
        package fixtures:kindless@1.0.0;
        interface greeting {
            greet: func() -> string;
        }
        world kindless {
            export greeting;
        }
    ",
});

struct Plugin;

impl exports::fixtures::kindless::greeting::Guest for Plugin {
    fn greet() -> String {
        "hello".into()
    }
}

export!(Plugin);
