//! Detection of virtual machines and containers.

use crate::finding::{MachineFinding, State};
use crate::tree::Tree;

/// Returns the product name of the hypervisor, or a generic name if only its presence is known.
/// Returns `None` on bare metal.
pub(crate) fn hypervisor(tree: &Tree) -> Option<String> {
    let cpu = tree.text("/proc/cpuinfo").unwrap_or_default();
    let flagged = cpu
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    let product = tree.text("/sys/class/dmi/id/product_name").unwrap_or_default();
    let vendor = tree.text("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let kind = tree.word("/sys/hypervisor/type");
    let known = [
        "KVM",
        "QEMU",
        "VMware",
        "VirtualBox",
        "Virtual Machine",
        "HVM domU",
        "Google Compute Engine",
        "Amazon EC2",
        "Xen",
        "Firecracker",
    ];
    // Product names also occur on bare metal (`Amazon EC2` has metal instances), so the processor's
    // flag decides.
    let named = known
        .into_iter()
        .find(|name| product.contains(name) || vendor.contains(name));
    match (flagged, kind, named) {
        (_, Some(kind), _) => Some(kind),
        (true, None, Some(name)) => Some(name.to_owned()),
        (true, None, None) => Some("a hypervisor".to_owned()),
        // Arm processors have no such flag, so the product name decides.
        (false, None, Some(name)) if !cpu.contains("flags") => Some(name.to_owned()),
        (false, None, _) => None,
    }
}

/// Returns the kind of container; `None` outside of one.
pub(crate) fn container(tree: &Tree) -> Option<&'static str> {
    if tree.exists("/.dockerenv") {
        return Some("docker");
    }
    if tree.exists("/run/.containerenv") {
        return Some("podman");
    }
    let groups = ["/proc/1/cgroup", "/proc/self/cgroup"]
        .map(|path| tree.text(path).unwrap_or_default())
        .concat();
    [
        ("kubepods", "kubernetes"),
        ("/docker", "docker"),
        ("libpod", "podman"),
        ("/lxc", "lxc"),
        ("containerd", "containerd"),
    ]
    .into_iter()
    .find(|(mark, _)| groups.contains(mark))
    .map(|(_, name)| name)
}

pub(crate) fn finding(tree: &Tree) -> MachineFinding {
    let hypervisor = hypervisor(tree);
    let mut found = match &hypervisor {
        Some(name) => format!("a virtual machine ({name})"),
        None => "no hypervisor".to_owned(),
    };
    match container(tree) {
        Some(name) => found.push_str(&format!(", in a container ({name})")),
        None => found.push_str(", no container"),
    }
    MachineFinding {
        name: "environment",
        state: if hypervisor.is_some() {
            State::Advice
        } else {
            State::Good
        },
        found,
        why: "a virtual machine adds pauses of milliseconds that nothing inside it can prevent; the measured wake-ups show how many"
            .to_owned(),
        remedy: hypervisor.map(|_| "for the tails (P99.9 and the maximum) measure from bare metal".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    #[test]
    fn detects_hypervisor_flag_of_the_processor() {
        let (_folder, bare) = tree(&[("/proc/cpuinfo", "flags\t\t: fpu sse2 vmx\n")]);
        assert_eq!(hypervisor(&bare), None);
        let (_folder, guest) = tree(&[
            (
                "/proc/cpuinfo",
                "model name\t: x\nflags\t\t: fpu hypervisor sse2\n",
            ),
            ("/sys/class/dmi/id/sys_vendor", "QEMU\n"),
        ]);
        assert_eq!(hypervisor(&guest).as_deref(), Some("QEMU"));
        assert_eq!(finding(&guest).state, State::Advice);
        // A metal instance also has the name of the cloud.
        let (_folder, metal) = tree(&[
            ("/proc/cpuinfo", "flags\t\t: fpu sse2\n"),
            ("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n"),
        ]);
        assert_eq!(hypervisor(&metal), None);
        let (_folder, arm) = tree(&[
            ("/proc/cpuinfo", "Features\t: fp asimd\n"),
            ("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n"),
        ]);
        assert_eq!(hypervisor(&arm).as_deref(), Some("Amazon EC2"));
    }

    #[test]
    fn containers_leave_marks() {
        let (_folder, none) = tree(&[("/proc/1/cgroup", "0::/init.scope\n")]);
        assert_eq!(container(&none), None);
        for (path, text, name) in [
            ("/.dockerenv", "", "docker"),
            ("/run/.containerenv", "", "podman"),
            ("/proc/1/cgroup", "0::/kubepods/burstable/pod1/2\n", "kubernetes"),
            ("/proc/self/cgroup", "3:cpu:/lxc/a\n", "lxc"),
        ] {
            let (_folder, tree) = tree(&[(path, text)]);
            assert_eq!(container(&tree), Some(name), "{path}");
        }
    }
}
