// SPDX-License-Identifier: MIT
#include "os/cpu/cpu_quota.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>
#include <vector>

#include "os/text_file.hpp"

namespace ums::os {

namespace {

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    std::istringstream in{text};
    for (std::string part; std::getline(in, part, at);) parts.push_back(part);
    return parts;
}

bool has(const std::vector<std::string>& all, const char* one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

// Decodes blanks and the like as /proc/self/mountinfo writes them: \040.
std::string unescaped(const std::string& text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto is_octal = [&](std::size_t at) {
            return at < text.size() && text[at] >= '0' && text[at] <= '7';
        };
        if (text[i] == '\\' && is_octal(i + 1) && is_octal(i + 2) && is_octal(i + 3)) {
            plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                       (text[i + 3] - '0'));
            i += 3;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

// Where a hierarchy of groups is mounted, and which of its folders is shown there: in a container
// it is not "/".
struct hierarchy {
    std::string shown, at;
    bool is_unified = false;
};

// Parses: 36 35 98:0 /shown /at options [optional ...] - type source options
std::optional<hierarchy> as_hierarchy(const std::string& line) {
    const auto words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 10 || words.end() - dash < 4) return {};
    const bool is_unified = dash[1] == "cgroup2";
    if (!is_unified && (dash[1] != "cgroup" || !has(split(dash[3], ','), "cpu"))) return {};
    return hierarchy{unescaped(words[3]), unescaped(words[4]), is_unified};
}

// The group of this process in that hierarchy, from "0::/path" or "4:cpu,cpuacct:/path". Empty:
// none.
std::string group_in(const hierarchy& tree, const std::string& root) {
    std::istringstream file{read_text(root + "/proc/self/cgroup")};
    for (std::string line; std::getline(file, line);) {
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == line.npos || second == line.npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        if (tree.is_unified ? controllers.empty() : has(split(controllers, ','), "cpu"))
            return line.substr(second + 1);
    }
    return "";
}

std::optional<double> number(const std::string& text) {
    double value = 0;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%lf%c", &value, &rest) != 1 || !(value > 0)) return {};
    return value;
}

// The quota of one group; none if the group has no limit of its own.
cpu_quota quota_of(const std::string& folder, bool is_unified, const std::string& root) {
    const std::string file = folder + (is_unified ? "/cpu.max" : "/cpu.cfs_quota_us");
    std::optional<double> most, period;
    if (is_unified) {
        const auto words = split(first_line(root + file), ' ');
        if (words.size() == 2) most = number(words[0]), period = number(words[1]);
    } else {
        most = number(first_line(root + file));  // -1: there is no limit.
        period = number(first_line(root + folder + "/cpu.cfs_period_us"));
    }
    if (!most || !period) return {};
    return {*most / *period, file};
}

}  // namespace

cpu_quota find_cpu_quota(const std::string& root) {
    cpu_quota least;
    std::istringstream mounts{read_text(root + "/proc/self/mountinfo")};
    for (std::string line; std::getline(mounts, line);) {
        const auto tree = as_hierarchy(line);
        if (!tree) continue;
        std::string group = group_in(*tree, root);
        // Folders above the one that is shown cannot be seen.
        if (tree->shown != "/")
            group = group.starts_with(tree->shown) ? group.substr(tree->shown.size()) : "";
        for (;;) {
            while (group.ends_with('/')) group.pop_back();
            cpu_quota found = quota_of(tree->at + group, tree->is_unified, root);
            if (found.cpus > 0 && (least.cpus == 0 || found.cpus < least.cpus))
                least = std::move(found);
            if (group.empty()) break;
            group.erase(group.rfind('/'));
        }
    }
    return least;
}

unsigned whole_cpus(const cpu_quota& quota, unsigned usable) noexcept {
    if (quota.cpus <= 0 || quota.cpus >= usable) return usable;
    return std::max(1u, static_cast<unsigned>(std::ceil(quota.cpus)));
}

}  // namespace ums::os
