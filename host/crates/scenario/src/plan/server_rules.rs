//! Rules about servers and connections.

use crate::path;
use crate::plan::client::{Client, ClientKind, Connections, HttpVersion, TargetServer, Tls, sim_profile};
use crate::plan::findings::{Findings, address_problem};

/// Reports every violated rule.
pub(super) fn broken(findings: &mut Findings<'_>, client: &Client, path: &str) {
    let key = |name: &str| path::join(path, name);
    if client.api_base.is_some() && !client.targets.is_empty() {
        findings.add(&key("targets"), "give `api_base` or `targets`, not both");
    }
    tls(findings, &key("tls"), &client.tls);
    proxy(findings, &key("proxy"), client.proxy.as_deref());
    for (index, target) in client.targets.iter().enumerate() {
        let at = path::item(&key("targets"), index);
        let base = path::join(&at, "api_base");
        if let Some(message) = address_problem(&target.api_base) {
            findings.add(&base, message);
        } else if sim_profile(&target.api_base).is_some() {
            findings.add(
                &base,
                "the simulator cannot be one of several targets: set it as `api_base`",
            );
        }
        let same = |other: &TargetServer| other.api_base == target.api_base;
        if client.targets[..index].iter().any(same) {
            findings.add(&base, "this server is already in the list");
        }
        if let Some(own) = &target.tls {
            tls(findings, &path::join(&at, "tls"), own);
        }
        proxy(findings, &path::join(&at, "proxy"), target.proxy.as_deref());
    }
    if client.source_addresses.as_ref().is_some_and(Vec::is_empty) {
        findings.add(
            &key("source_addresses"),
            "is empty; use null to let the system choose",
        );
    }
    for (index, address) in client.source_addresses.iter().flatten().enumerate() {
        if address.parse::<std::net::IpAddr>().is_err() {
            findings.add(
                &path::item(&key("source_addresses"), index),
                format!("`{address}` is not an IP address"),
            );
        }
    }
    if client.http_version == HttpVersion::Http2 && client.connections != Connections::Pooled {
        findings.add(
            &key("connections"),
            "with `http_version: http2` requests share connections; use `pooled`",
        );
    }
    if matches!(client.kind, ClientKind::Template) && client.address_append_value.is_empty() {
        findings.add(
            &key("address_append_value"),
            "a `template` needs the path of the API, for example `v2/generate`",
        );
    }
}

fn tls(findings: &mut Findings<'_>, at: &str, tls: &Tls) {
    match (&tls.client_certificate, &tls.client_key) {
        (Some(_), None) => findings.add(
            &path::join(at, "client_key"),
            "`client_certificate` needs its key",
        ),
        (None, Some(_)) => findings.add(
            &path::join(at, "client_certificate"),
            "`client_key` needs its certificate",
        ),
        _ => {}
    }
}

fn proxy(findings: &mut Findings<'_>, at: &str, proxy: Option<&str>) {
    let Some(address) = proxy else { return };
    let message = address_problem(address).or_else(|| {
        let plain = address
            .split_once("://")
            .is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("http"));
        (!plain).then(|| "only plain HTTP proxies (`http://`) are supported".to_owned())
    });
    if let Some(message) = message {
        findings.add(at, message);
    }
}
