// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <ctime>

#include "page/assets.hpp"

namespace tool {

namespace {

std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : text) switch (c) {
            case '&':
                safe += "&amp;";
                break;
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            case '"':
                safe += "&quot;";
                break;
            default:
                safe += c;
        }
    return safe;
}

// JSON inside a script element: nothing in it may look like the element's end.
std::string in_script(const json& data) {
    std::string safe;
    for (const char c : data.dump()) safe += c == '<' ? std::string{"\\u003c"} : std::string{c};
    return safe;
}

// Where there is no room for columns, each row is a list, whose entries the titles name.
std::string table_html(const table& shown) {
    // So many columns fit in smaller letters only.
    constexpr std::size_t many = 14;
    std::string html = fmt::format("<h3>{}</h3>\n<table{}>\n<thead><tr>", escaped(shown.title),
                                   shown.header.size() > many ? " class=\"many\"" : "");
    for (std::size_t c = 0; c < shown.header.size(); ++c)
        html += fmt::format("<th{}>{}</th>", c < shown.labels ? " class=\"label\"" : "",
                            escaped(shown.header[c]));
    html += "</tr></thead>\n<tbody>\n";
    for (const auto& row : shown.rows) {
        assert(row.size() == shown.header.size() && "a row does not fit its header");
        html += "<tr>";
        for (std::size_t c = 0; c < row.size(); ++c) {
            const auto& [text, spread, is_error] = row[c];
            html += fmt::format("<td data-title=\"{}\"{}><span>{}", escaped(shown.header[c]),
                                c < shown.labels ? " class=\"label\""
                                : is_error       ? " class=\"error\""
                                                 : "",
                                escaped(text));
            if (!spread.empty()) html += fmt::format(" <small>{}</small>", escaped(spread));
            html += "</span></td>";
        }
        html += "</tr>\n";
    }
    html += "</tbody></table>\n";
    for (const auto& note : shown.notes)
        html += fmt::format("<p class=\"note\">{}</p>\n", escaped(note));
    return html;
}

std::string claim_html(const claim& shown) {
    std::string html = fmt::format("<section class=\"claim\">\n<h2>{}</h2>\n<p>{}</p>\n<dl>\n",
                                   escaped(shown.says), escaped(shown.about));
    double longest = 0;
    for (const auto& one : shown.bars) longest = std::max(longest, one.value);
    for (const auto& one : shown.bars)
        html += fmt::format(
            "<dt{}>{}</dt><dd><span class=\"track\"><span class=\"bar\" "
            "style=\"width: {:.2f}%\"></span></span> <span class=\"value\">{}</span></dd>\n",
            one.runtime.starts_with("ums") ? " class=\"own\"" : "", escaped(one.runtime),
            longest > 0 ? one.value / longest * 100 : 0, escaped(one.text));
    return html + "</dl>\n</section>\n";
}

std::string replaced(std::string_view text,
                     const std::vector<std::pair<std::string_view, std::string>>& with) {
    std::string out;
    while (!text.empty()) {
        const auto brace = text.find("{{");
        out += text.substr(0, brace);
        if (brace == std::string_view::npos) break;
        text.remove_prefix(brace);
        bool is_known = false;
        for (const auto& [key, value] : with) {
            if (!text.starts_with(key)) continue;
            out += value;
            text.remove_prefix(key.size());
            is_known = true;
            break;
        }
        if (is_known) continue;
        out += "{{";
        text.remove_prefix(2);
    }
    return out;
}

}  // namespace

json to_json(const result& got, const machine& on) {
    auto rows = json::array();
    for (const auto& group : got.plan)
        for (const auto& one : group) rows.push_back(one.row());
    return {{"bench", got.bench},
            {"machine",
             {{"cpu", on.cpu},
              {"cpus", on.cpus},
              {"kernel", on.kernel},
              {"compiler", on.compiler},
              {"build", on.build}}},
            {"rows", rows}};
}

std::string verdict(const std::vector<section>& sections) {
    std::string says;
    for (const auto& one : sections)
        if (!one.shown.claims.empty())
            says += (says.empty() ? "" : " ") + one.shown.claims.front().says;
    return says;
}

std::string to_html(const std::vector<section>& sections, const machine& on,
                    const std::string& command_line) {
    std::string body;
    auto charts = json::array();
    for (const auto& one : sections)
        for (const auto& each : one.shown.claims) body += claim_html(each);
    const bool is_folded = !body.empty();
    if (is_folded) body += "<h2>Everything that was measured</h2>\n";
    for (const auto& [name, about, shown] : sections) {
        body += fmt::format(
            "<details id=\"{}\"{}>\n<summary><b>{}</b>: {}</summary>\n<div class=\"charts\">\n",
            escaped(name), is_folded ? "" : " open", escaped(name), escaped(about));
        for (const auto& one : shown.charts) {
            body += fmt::format(
                "<figure><h3>{}</h3><div class=\"canvas\"><canvas id=\"chart{}\" role=\"img\" "
                "aria-label=\"{}\"></canvas></div>{}</figure>\n",
                escaped(one.title), charts.size(), escaped(one.title),
                one.about.empty()
                    ? ""
                    : fmt::format("\n<figcaption>{}</figcaption>", escaped(one.about)));
            charts.push_back(one.to_json());
        }
        body += "</div>\n";
        for (const auto& one : shown.tables) body += table_html(one);
        body += "</details>\n";
    }
    const auto now = std::time(nullptr);
    const auto says = verdict(sections);
    return replaced(
        assets::page(),
        {{"{{verdict}}", escaped(says.empty() ? "ums bench" : says)},
         {"{{machine}}", escaped(fmt::format("{}, {} CPUs, Linux {}, {}, {}", on.cpu, on.cpus,
                                             on.kernel, on.compiler, on.build))},
         {"{{command}}", escaped(command_line)},
         {"{{date}}", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(now))},
         {"{{style}}", std::string{assets::style()}},
         {"{{library}}", std::string{assets::chart_library()}},
         {"{{charts}}", in_script(charts)},
         {"{{script}}", std::string{assets::script()}},
         {"{{body}}", body}});
}

}  // namespace tool
