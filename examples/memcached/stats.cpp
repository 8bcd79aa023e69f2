// SPDX-License-Identifier: MIT

// The stats command, apart from what only the server knows.

#include <string>

#include "session.hpp"
#include "size_classes.hpp"

namespace memcached {

namespace {

void say(replies& to, unsigned number, std::string_view name, std::uint64_t value,
         std::string_view before = "") {
    to.text("STAT ");
    to.text(before);
    to.number(number);
    to.character(':');
    to.text(name);
    to.character(' ');
    to.number(value);
    to.text("\r\n");
}

}  // namespace

void session::stats(const words& line, replies& to) {
    const unsigned n = line.count();
    service::reporter* const report = service_.report;
    const std::string_view what = n > 1 ? line[1] : "";
    if (what.empty()) {
        if (report != nullptr) report->general(to);
        return to.text("END\r\n");
    }
    if (what == "reset") {
        service_.items.reset_counters();
        return to.text("RESET\r\n");
    }
    if (what == "settings") {
        if (report != nullptr) report->settings(to);
        return to.text("END\r\n");
    }
    if (what == "conns") {
        if (report != nullptr) report->connections_of(to);
        return to.text("END\r\n");
    }
    if (what == "detail") {  // Statistics by prefix of the key are not kept.
        if (n > 2 && (line[2] == "on" || line[2] == "off")) return to.text("OK\r\n");
        if (n > 2 && line[2] == "dump") return to.text("END\r\n");
        return to.text("CLIENT_ERROR usage: stats detail on|off|dump\r\n");
    }
    if (what == "items" || what == "slabs") {
        const auto uses = service_.items.uses();
        unsigned active = 0;
        for (unsigned number = 1; number < uses.size(); ++number) {
            const store::class_use& use = uses[number];
            if (use.items == 0) continue;
            ++active;
            if (what == "items") {
                say(to, number, "number", use.items, "items:");
            } else {
                say(to, number, "chunk_size", classes.bytes(number));
                say(to, number, "used_chunks", use.items);
                say(to, number, "mem_requested", use.bytes);
            }
        }
        if (what == "slabs") {
            to.text("STAT active_slabs ");
            to.number(active);
            to.text("\r\nSTAT total_malloced ");
            to.number(service_.items.used_bytes());
            to.text("\r\n");
        }
        return to.text("END\r\n");
    }
    if (what == "sizes") return to.text("STAT sizes_status disabled\r\nEND\r\n");
    to.text("ERROR\r\n");
}

}  // namespace memcached
