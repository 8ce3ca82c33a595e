//! A headless Chromium, driven over the DevTools protocol through a pipe: JSON messages terminated
//! by a zero byte. This requires neither a port nor a crate.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// The timeout of any operation.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the path of Chromium, if available: the value of `CHROMIUM`, or an executable on the
/// path.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    let names = [
        "chromium",
        "google-chrome",
        "chromium-headless-shell",
        "chromium-browser",
    ];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

/// One browser with one tab.
pub(crate) struct Browser {
    child: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// Events that arrived while another message was pending.
    pub(crate) events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser with a tab of this size.
    pub(crate) fn start(program: &Path, width: u32, height: u32) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        // The protocol uses file descriptors 3 and 4, to which the shell duplicates stdin and
        // stdout.
        let mut child = Command::new("bash")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1"])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let requests = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            loop {
                let mut message = Vec::new();
                match output.read_until(0, &mut message) {
                    Ok(count) if count > 1 => message.pop(),
                    _ => return,
                };
                if let Ok(message) = serde_json::from_slice(&message)
                    && sender.send(message).is_err()
                {
                    return;
                }
            }
        });
        let mut browser = Browser {
            child,
            requests,
            messages,
            session: None,
            last: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.size(width, height);
        browser
    }

    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    pub(crate) fn prefer(&mut self, scheme: &str) {
        self.call(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
    }

    /// Calls a method and waits for its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut request = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        self.requests.write_all(request.to_string().as_bytes()).unwrap();
        self.requests.write_all(&[0]).unwrap();
        self.requests.flush().unwrap();
        loop {
            let mut message = self
                .messages
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|error| panic!("{method}: {error}"));
            if message["id"] == json!(self.last) {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            if message.get("method").is_some() {
                self.events.push(message);
            }
        }
    }

    /// Returns the value of an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let mut result = self.call(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(
            result.get("exceptionDetails").is_none(),
            "{expression}: {}",
            result["exceptionDetails"]
        );
        result["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&mut self, expression: &str) {
        for _ in 0..400 {
            if self.eval(expression) == json!(true) {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("never became true: {expression}");
    }

    /// Waits until the page has rendered pending changes.
    pub(crate) fn settle(&mut self) {
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(1)))))");
    }

    /// Opens an address and waits until the page has rendered.
    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({"url": address}));
        self.until("Boolean(document.documentElement && document.documentElement.dataset.ready === 'yes')");
        self.settle();
    }

    pub(crate) fn text(&mut self, selector: &str) -> String {
        let value = self.eval(&format!(
            "document.querySelector({}).textContent",
            json!(selector)
        ));
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Scrolls an element into view and returns its position: left, top, width, height.
    pub(crate) fn place(&mut self, selector: &str) -> [f64; 4] {
        let value = self.eval(&format!(
            "(() => {{ const node = document.querySelector({}); node.scrollIntoView({{block: 'center'}}); const box = node.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; }})()",
            json!(selector)
        ));
        self.settle();
        std::array::from_fn(|index| value[index].as_f64().unwrap())
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64), pressed: bool) {
        self.call(
            "Input.dispatchMouseEvent",
            json!({"type": kind, "x": x, "y": y, "button": if pressed { "left" } else { "none" }, "buttons": u8::from(pressed), "clickCount": u8::from(kind != "mouseMoved")}),
        );
    }

    pub(crate) fn hover(&mut self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, false);
        self.settle();
    }

    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from, false);
        self.mouse("mousePressed", from, true);
        for step in 1..=4 {
            let share = f64::from(step) / 4.0;
            self.mouse(
                "mouseMoved",
                (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share),
                true,
            );
        }
        self.call(
            "Input.dispatchMouseEvent",
            json!({"type": "mouseReleased", "x": to.0, "y": to.1, "button": "left", "buttons": 0, "clickCount": 1}),
        );
        self.settle();
    }

    pub(crate) fn click(&mut self, selector: &str) {
        let [x, y, width, height] = self.place(selector);
        self.click_at((x + width / 2.0, y + height / 2.0));
    }

    /// Clicks at a position.
    pub(crate) fn click_at(&mut self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, false);
        self.mouse("mousePressed", at, true);
        self.call(
            "Input.dispatchMouseEvent",
            json!({"type": "mouseReleased", "x": at.0, "y": at.1, "button": "left", "buttons": 0, "clickCount": 1}),
        );
        self.settle();
    }

    pub(crate) fn wheel(&mut self, at: (f64, f64), delta: f64, control: bool) {
        self.call(
            "Input.dispatchMouseEvent",
            json!({"type": "mouseWheel", "x": at.0, "y": at.1, "deltaX": 0, "deltaY": delta, "modifiers": if control { 2 } else { 0 }}),
        );
        self.settle();
    }

    /// Presses a key: its name and, if it produces a character, its text. `shift` holds the shift
    /// key.
    pub(crate) fn key(&mut self, key: &str, shift: bool) {
        self.press(key, shift);
        self.settle();
    }

    /// Presses keys in sequence, without waiting for their effects.
    pub(crate) fn keys(&mut self, keys: &[&str]) {
        keys.iter().for_each(|key| self.press(key, false));
        self.settle();
    }

    fn press(&mut self, key: &str, shift: bool) {
        let mut down = json!({"type": "keyDown", "key": key, "modifiers": if shift { 8 } else { 0 }});
        if key.chars().count() == 1 {
            down["text"] = json!(key);
        }
        if key == "Enter" {
            down["text"] = json!("\r");
        }
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        down["windowsVirtualKeyCode"] = json!(code);
        self.call("Input.dispatchKeyEvent", down);
        self.call(
            "Input.dispatchKeyEvent",
            json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code}),
        );
    }

    /// Returns exceptions and messages of the console and the log; expected to be empty.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let kinds = [
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
        ];
        self.events
            .iter()
            .filter(|event| kinds.iter().any(|kind| event["method"] == json!(kind)))
            .map(|event| event.to_string())
            .collect()
    }

    /// Returns the addresses that the page requested.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.events
            .iter()
            .filter(|event| event["method"] == json!("Network.requestWillBeSent"))
            .filter_map(|event| event["params"]["request"]["url"].as_str().map(str::to_owned))
            .collect()
    }

    /// Writes the visible area as PNG.
    pub(crate) fn screenshot(&mut self, file: &Path) {
        use base64::Engine;
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(shot["data"].as_str().unwrap())
            .unwrap();
        std::fs::write(file, bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
