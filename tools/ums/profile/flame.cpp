// SPDX-License-Identifier: MIT
#include <cassert>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "profile_data.hpp"

extern "C" {
extern const char ums_asset_flame[], ums_asset_flame_end[];
}

namespace tool::profiling {

namespace {

struct node {
    std::int64_t ns = 0;  // Includes what is above it.
    frame first;          // Its file is shown.
    std::map<std::string, std::unique_ptr<node>> above;
};

// [name, microseconds, file, [children]]: short, because there are many.
nlohmann::json to_json(const std::string& name, const node& n) {
    nlohmann::json above = nlohmann::json::array();
    for (const auto& [child, of] : n.above) {
        assert(of->ns <= n.ns && "a function took longer than its caller");
        above.push_back(to_json(child, *of));
    }
    const std::string where =
        n.first.file.empty() ? "" : n.first.file + ":" + std::to_string(n.first.line);
    return {name, n.ns / 1000, where, above};
}

node tree(const profile_data& p, bool on_cpu) {
    node root;
    for (const sample& s : p.samples) {
        if (s.is_on_cpu != on_cpu) continue;
        root.ns += s.ns;
        node* at = &root;
        for (const frame& f : s.frames) {
            auto& next = at->above[f.function];
            if (!next) {
                next = std::make_unique<node>();
                next->first = f;
            }
            at = next.get();
            at->ns += s.ns;
        }
    }
    return root;
}

}  // namespace

std::string to_html(const profile_data& p) {
    const nlohmann::json data{{"title", p.title},
                              {"seconds", static_cast<double>(p.duration_ns) / 1e9},
                              {"on", to_json("on CPU", tree(p, true))},
                              {"off", to_json("off CPU", tree(p, false))}};
    std::string text = data.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    // Inside a script element nothing may look like its end.
    for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
        text.replace(at, 1, "\\u003c");
    std::string page{ums_asset_flame, ums_asset_flame_end};
    constexpr std::string_view mark = "{{data}}";
    assert(page.find(mark) != page.npos && "the page has no place for the data");
    page.replace(page.find(mark), mark.size(), text);
    return page;
}

}  // namespace tool::profiling
