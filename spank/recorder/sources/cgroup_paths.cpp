#include "spank/recorder/sources/cgroup_paths.h"

#include <algorithm>

#include "spank/recorder/file.h"

namespace sphase {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// mountinfo writes space, tab, newline and backslash as \040 and so on.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                      (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

/// Options of a v1 mount that stand among its controllers. Source: cgroup1_show_options().
bool is_mount_option(const std::string& word) {
  for (const char* option :
       {"rw", "ro", "noprefix", "xattr", "clone_children", "cpuset_v2_mode", "favordynmods"}) {
    if (word == option) return true;
  }
  return word.empty() || word.starts_with("release_agent=");
}

/// "ID PARENT DEV ROOT MOUNT_POINT OPTIONS … - TYPE SOURCE SUPER_OPTIONS"
std::optional<CgroupMount> parse_mount(const std::string& line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string::npos) return std::nullopt;
  const auto left = split(std::string_view(line).substr(0, dash), ' ');
  const auto right = split(std::string_view(line).substr(dash + 3), ' ');
  if (left.size() < 5 || right.size() < 3) return std::nullopt;
  if (right[0] != "cgroup" && right[0] != "cgroup2") return std::nullopt;
  CgroupMount mount;
  mount.root = unescape(left[3]);
  mount.mount_point = unescape(left[4]);
  mount.unified = right[0] == "cgroup2";
  if (!mount.unified) mount.controllers = split(right[2], ',');
  std::erase_if(mount.controllers, is_mount_option);
  return mount;
}

}  // namespace

std::vector<CgroupMount> parse_mountinfo(std::string_view text) {
  std::vector<CgroupMount> mounts;
  for (const std::string& line : split(text, '\n')) {
    if (auto mount = parse_mount(line)) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

std::map<std::string, std::string> parse_proc_cgroup(std::string_view text) {
  std::map<std::string, std::string> paths;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    if (path.empty() || path[0] != '/') continue;
    for (const std::string& controller :
         split(std::string_view(line).substr(first + 1, second - first - 1), ',')) {
      paths[controller] = path;
    }
  }
  return paths;
}

bool is_below(std::string_view inner, std::string_view outer) {
  if (outer == "/") return inner.size() > 1;
  return inner.size() > outer.size() && inner.substr(0, outer.size()) == outer &&
         inner[outer.size()] == '/';
}

CgroupTree CgroupTree::read(const std::string& proc) {
  return CgroupTree(parse_mountinfo(read_file(proc + "/self/mountinfo").value_or("")), proc);
}

const CgroupMount* CgroupTree::mount_of(const std::string& controller) const {
  for (const CgroupMount& mount : mounts_) {
    if (controller.empty() && mount.unified) return &mount;
    for (const std::string& name : mount.controllers) {
      if (!controller.empty() && name == controller) return &mount;
    }
  }
  return nullptr;
}

std::map<std::string, std::string> CgroupTree::paths(int pid) const {
  const auto text = read_file(proc_ + "/" + std::to_string(pid) + "/cgroup");
  return text ? parse_proc_cgroup(*text) : std::map<std::string, std::string>{};
}

std::optional<std::string> CgroupTree::path(int pid, const std::string& controller) const {
  const auto all = paths(pid);
  const auto found = all.find(controller);
  if (found == all.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> CgroupTree::directory(int pid, const std::string& controller) const {
  const auto inside = path(pid, controller);
  if (!inside) return std::nullopt;
  return directory_of(controller, *inside);
}

std::optional<std::string> CgroupTree::directory_of(const std::string& controller,
                                                    const std::string& path) const {
  const CgroupMount* mount = mount_of(controller);
  if (mount == nullptr) return std::nullopt;
  if (path.starts_with("/..")) return std::nullopt;  // outside our cgroup namespace
  if (mount->root == "/") return mount->mount_point + (path == "/" ? "" : path);
  // Only a part of the hierarchy is mounted (a container): the path must lie in that part.
  if (path == mount->root) return mount->mount_point;
  if (!is_below(path, mount->root)) return std::nullopt;
  return mount->mount_point + path.substr(mount->root.size());
}

}  // namespace sphase
