//! Paths of the control group files of this process, for versions 1 and 2.

use crate::tree::Tree;

/// Maximum depth of a hierarchy that is searched.
const DEEPEST: usize = 32;

/// Returns the folders that may contain the files of a controller, first that of the group itself
/// and then those of its ancestors: a limit of any of them applies.
///
/// The path in `/proc/self/cgroup` may be that of the host, while a container sees only its own
/// part, mounted at the root. The root is therefore always among the folders.
pub(crate) fn folders(tree: &Tree, controller: &str) -> Vec<String> {
    let text = tree.text("/proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            for mount in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
                add(tree, mount, path, &mut found);
            }
        } else if controllers.split(',').any(|name| name == controller) {
            let named = [
                format!("/sys/fs/cgroup/{controller}"),
                format!("/sys/fs/cgroup/{controllers}"),
            ];
            for mount in named {
                add(tree, &mount, path, &mut found);
            }
        }
    }
    found
}

fn add(tree: &Tree, mount: &str, path: &str, found: &mut Vec<String>) {
    let mut path = path.trim_end_matches('/');
    for _ in 0..DEEPEST {
        let folder = format!("{mount}{path}");
        if !found.contains(&folder) && !path.contains("..") && tree.exists(&folder) {
            found.push(folder);
        }
        match path.rfind('/') {
            Some(end) if !path.is_empty() => path = &path[..end],
            _ => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    #[test]
    fn a_group_and_its_ancestors() {
        let (_folder, tree) = tree(&[
            ("/proc/self/cgroup", "0::/a.slice/b.scope\n"),
            ("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "max"),
        ]);
        assert_eq!(
            folders(&tree, "cpu"),
            [
                "/sys/fs/cgroup/a.slice/b.scope",
                "/sys/fs/cgroup/a.slice",
                "/sys/fs/cgroup"
            ]
        );
    }

    #[test]
    fn a_container_sees_only_the_root() {
        let (_folder, tree) = tree(&[
            (
                "/proc/self/cgroup",
                "4:memory:/docker/1234\n3:cpu,cpuacct:/docker/1234\n",
            ),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1"),
        ]);
        assert_eq!(folders(&tree, "cpu"), ["/sys/fs/cgroup/cpu,cpuacct"]);
        assert!(folders(&tree, "memory").is_empty());
    }
}
