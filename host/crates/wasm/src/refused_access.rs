//! WASI interfaces through which a guest asks for the machine. It receives the ordinary answer of
//! an empty machine, and the host notes that it asked, for the log and for reports of failures.

use veeksha_ports::SandboxedAccess;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::cli::WasiCliView;
use wasmtime_wasi::clocks::WasiClocksView;
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::cli::environment;
use wasmtime_wasi::p2::bindings::clocks::wall_clock;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::sockets::{instance_network, network, tcp_create_socket};
use wasmtime_wasi::p2::{Network, SocketError, SocketResult, TcpSocket};
use wasmtime_wasi::sockets::WasiSocketsView;

use crate::state::HostState;

/// The marker type that links [`WatchedView`].
struct RefusedAccesses;

impl HasData for RefusedAccesses {
    type Data<'a> = WatchedView<'a>;
}

/// A store's state, with a note for each access.
struct WatchedView<'a>(&'a mut HostState);

fn watched(state: &mut HostState) -> WatchedView<'_> {
    WatchedView(state)
}

/// Replaces the interfaces in a linker that permits it.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    environment::add_to_linker::<HostState, RefusedAccesses>(linker, watched)?;
    wall_clock::add_to_linker::<HostState, RefusedAccesses>(linker, watched)?;
    preopens::add_to_linker::<HostState, RefusedAccesses>(linker, watched)?;
    instance_network::add_to_linker::<HostState, RefusedAccesses>(linker, watched)?;
    tcp_create_socket::add_to_linker::<HostState, RefusedAccesses>(linker, watched)
}

impl environment::Host for WatchedView<'_> {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        if self.0.environment.is_empty() {
            self.0.note_access(SandboxedAccess::Environment);
        }
        Ok(self.0.environment.clone().into_iter().collect())
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        self.0.cli().get_arguments()
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        self.0.cli().initial_cwd()
    }
}

impl wall_clock::Host for WatchedView<'_> {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        self.0.note_access(SandboxedAccess::Clock);
        wall_clock::Host::now(&mut self.0.clocks())
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        wall_clock::Host::resolution(&mut self.0.clocks())
    }
}

impl preopens::Host for WatchedView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        self.0.note_access(SandboxedAccess::Files);
        preopens::Host::get_directories(&mut self.0.filesystem())
    }
}

impl instance_network::Host for WatchedView<'_> {
    fn instance_network(&mut self) -> wasmtime::Result<Resource<Network>> {
        self.0.note_access(SandboxedAccess::Network);
        self.0.sockets().instance_network()
    }
}

impl network::Host for WatchedView<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<network::ErrorCode> {
        self.0.sockets().convert_error_code(error)
    }

    fn network_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<network::ErrorCode>> {
        self.0.sockets().network_error_code(error)
    }
}

impl network::HostNetwork for WatchedView<'_> {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        network::HostNetwork::drop(&mut self.0.sockets(), network)
    }
}

impl tcp_create_socket::Host for WatchedView<'_> {
    fn create_tcp_socket(&mut self, family: network::IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.0.note_access(SandboxedAccess::Network);
        self.0.sockets().create_tcp_socket(family)
    }
}
