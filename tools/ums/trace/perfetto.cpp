// SPDX-License-Identifier: MIT
#include "perfetto.hpp"

#include <fmt/format.h>

#include <cassert>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>
#include <stdexcept>

#include "../inspect/printable.hpp"
#include "../inspect/regular_file.hpp"
#include "record.hpp"

namespace tool::tracing {

namespace {

using protozero::pbf_reader;
using protozero::pbf_writer;

// The numbers of the fields, by message.
namespace trace_fields {
constexpr unsigned packet = 1;
}
namespace packet_fields {
constexpr unsigned timestamp = 8, sequence = 10, track_event = 11, interned = 12, flags = 13,
                   descriptor = 60;
}
namespace descriptor_fields {
constexpr unsigned uuid = 1, name = 2, process = 3, parent = 5, description = 14;
}
namespace process_fields {
constexpr unsigned pid = 1, name = 6;
}
namespace event_fields {
constexpr unsigned type = 9, name_iid = 10, track = 11, flows = 47, ending_flows = 48;
constexpr unsigned begin = 1, end = 2, instant = 3;  // Types.
}  // namespace event_fields
namespace interned_fields {
constexpr unsigned event_names = 2, iid = 1, name = 2;
}

constexpr std::uint64_t sequence = 1;
// Before each packet, with its length.
constexpr char packet_tag = trace_fields::packet << 3 | 2;
constexpr std::uint64_t packet_most = 1 << 24;
constexpr unsigned cleared = 1, needs_state = 2;

// The numbers of all tracks.
constexpr std::uint64_t process_uuid = 1, fibers_uuid = 2, processors_uuid = 3,
                        first_processor = 16, first_fiber_track = std::uint64_t{1} << 32;

std::string fiber_title(std::uint64_t id, std::string_view name) {
    return name.empty() ? fmt::format("fiber {}", id)
                        : fmt::format("fiber {} \"{}\"", id, inspect::printable(name));
}

}  // namespace

perfetto_file::perfetto_file(std::FILE* into, int process, const std::string& name) : file_{into} {
    std::string packet;
    {
        pbf_writer p{packet};
        p.add_uint32(packet_fields::sequence, sequence);
        p.add_uint32(packet_fields::flags, cleared);
        pbf_writer d{p, packet_fields::descriptor};
        d.add_uint64(descriptor_fields::uuid, process_uuid);
        pbf_writer of{d, descriptor_fields::process};
        of.add_int32(process_fields::pid, process);
        of.add_string(process_fields::name, inspect::printable(name));
    }
    put(packet);
    descriptor(processors_uuid, process_uuid, "processors", "");
    descriptor(fibers_uuid, process_uuid, "fibers", "");
}

void perfetto_file::put(const std::string& packet) {
    std::string framed;
    pbf_writer{framed}.add_message(trace_fields::packet, packet);
    std::fwrite(framed.data(), 1, framed.size(), file_);
}

void perfetto_file::descriptor(std::uint64_t uuid, std::uint64_t parent, std::string_view name,
                               std::string_view about) {
    std::string packet;
    {
        pbf_writer p{packet};
        p.add_uint32(packet_fields::sequence, sequence);
        pbf_writer d{p, packet_fields::descriptor};
        d.add_uint64(descriptor_fields::uuid, uuid);
        d.add_uint64(descriptor_fields::parent, parent);
        d.add_string(descriptor_fields::name, inspect::printable(name));
        if (!about.empty()) d.add_string(descriptor_fields::description, inspect::printable(about));
    }
    put(packet);
}

void perfetto_file::processor(std::uint32_t track, std::string_view name) {
    descriptor(first_processor + track, processors_uuid, name, "");
}

void perfetto_file::fiber(std::uint64_t id, std::string_view name, std::string_view start) {
    fibers_[id] = fiber_title(id, name);
    descriptor(first_fiber_track + id, fibers_uuid, fibers_[id], start);
}

void perfetto_file::event(std::uint64_t track, unsigned type, std::int64_t at,
                          std::string_view name, std::uint64_t begins_arrow,
                          std::uint64_t ends_arrow) {
    std::string packet;
    {
        pbf_writer p{packet};
        p.add_uint64(packet_fields::timestamp, static_cast<std::uint64_t>(at));
        p.add_uint32(packet_fields::sequence, sequence);
        p.add_uint32(packet_fields::flags, needs_state);
        std::uint64_t iid = 0;
        if (!name.empty()) {
            const auto [known, is_new] = names_.try_emplace(std::string{name}, names_.size() + 1);
            iid = known->second;
            if (is_new) {
                pbf_writer interned{p, packet_fields::interned};
                pbf_writer one{interned, interned_fields::event_names};
                one.add_uint64(interned_fields::iid, iid);
                one.add_string(interned_fields::name, inspect::printable(name));
            }
        }
        pbf_writer e{p, packet_fields::track_event};
        e.add_enum(event_fields::type, static_cast<std::int32_t>(type));
        if (iid != 0) e.add_uint64(event_fields::name_iid, iid);
        e.add_uint64(event_fields::track, track);
        if (begins_arrow != 0) e.add_fixed64(event_fields::flows, begins_arrow);
        if (ends_arrow != 0) e.add_fixed64(event_fields::ending_flows, ends_arrow);
    }
    put(packet);
}

void perfetto_file::slice(std::uint64_t track, std::string_view name, std::int64_t begin,
                          std::int64_t end, std::uint64_t ends_arrow) {
    event(track, event_fields::begin, begin, name, 0, ends_arrow);
    event(track, event_fields::end, end, {}, 0, 0);
}

void perfetto_file::add(const span& s) {
    assert(s.begin <= s.end && "a span ends before it begins");
    assert(fibers_.contains(s.fiber) && "a span is told of a fiber that was not told of");
    const std::string_view name =
        s.does == fiber_does::waits ? s.waits_for : std::string_view{name_of(s.does)};
    slice(first_fiber_track + s.fiber, name, s.begin, s.end, s.woken_by);
    if (s.does == fiber_does::runs)
        slice(first_processor + s.track, fibers_[s.fiber], s.begin, s.end, 0);
}

void perfetto_file::add(const moment& m) {
    assert((m.fiber == 0 || fibers_.contains(m.fiber)) && "a moment is of a fiber not told of");
    event(m.fiber != 0 ? first_fiber_track + m.fiber : first_processor + m.track,
          event_fields::instant, m.at, m.text, m.wakes, 0);
}

namespace {

// A field with its type: another type under the same number is another field.
constexpr std::uint32_t number(unsigned field) {
    return protozero::tag_and_type(field, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t text(unsigned field) {
    return protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
}

class reader {
public:
    explicit reader(sink& to) : to_{to} {}

    void packet(pbf_reader p) {
        std::int64_t at = 0;
        while (p.next()) switch (p.tag_and_type()) {
                case number(packet_fields::timestamp):
                    at = in_bounds(static_cast<std::int64_t>(p.get_uint64()));
                    break;
                case text(packet_fields::descriptor):
                    track(p.get_message());
                    break;
                case text(packet_fields::interned):
                    names(p.get_message());
                    break;
                case text(packet_fields::track_event):
                    event(p.get_message(), at);
                    break;
                default:
                    p.skip();
            }
    }

private:
    void track(pbf_reader d) {
        std::uint64_t uuid = 0;
        std::string name, about;
        while (d.next()) switch (d.tag_and_type()) {
                case number(descriptor_fields::uuid):
                    uuid = d.get_uint64();
                    break;
                case text(descriptor_fields::name):
                    name = d.get_string();
                    break;
                case text(descriptor_fields::description):
                    about = d.get_string();
                    break;
                default:
                    d.skip();
            }
        if (uuid >= first_fiber_track) {
            const std::size_t quote = name.find('"');
            const bool is_named = quote != std::string::npos && name.size() >= quote + 2;
            to_.fiber(uuid - first_fiber_track,
                      is_named ? name.substr(quote + 1, name.size() - quote - 2) : "", about);
        } else if (uuid >= first_processor) {
            to_.processor(static_cast<std::uint32_t>(uuid - first_processor), name);
        }
    }
    void names(pbf_reader all) {
        while (all.next(interned_fields::event_names, protozero::pbf_wire_type::length_delimited)) {
            pbf_reader one = all.get_message();
            std::uint64_t iid = 0;
            std::string name;
            while (one.next()) switch (one.tag_and_type()) {
                    case number(interned_fields::iid):
                        iid = one.get_uint64();
                        break;
                    case text(interned_fields::name):
                        name = one.get_string();
                        break;
                    default:
                        one.skip();
                }
            names_[iid] = std::move(name);
        }
    }
    void event(pbf_reader e, std::int64_t at) {
        std::uint64_t uuid = 0, iid = 0;
        std::int32_t type = 0;
        while (e.next()) switch (e.tag_and_type()) {
                case number(event_fields::type):
                    type = e.get_enum();
                    break;
                case number(event_fields::track):
                    uuid = e.get_uint64();
                    break;
                case number(event_fields::name_iid):
                    iid = e.get_uint64();
                    break;
                default:
                    e.skip();
            }
        // It is a processor's track: the fiber's own track says the same.
        if (uuid < first_fiber_track) return;
        if (type == static_cast<std::int32_t>(event_fields::begin)) {
            open_[uuid] = {iid, at};
        } else if (type == static_cast<std::int32_t>(event_fields::end)) {
            const auto begun = open_.find(uuid);
            if (begun == open_.end()) return;
            const std::string& name = names_[begun->second.first];
            span s{
                uuid - first_fiber_track, fiber_does::waits, name, begun->second.second, at, 0, 0};
            for (const fiber_does d : {fiber_does::runs, fiber_does::is_ready,
                                       fiber_does::was_woken, fiber_does::is_blocked})
                if (name == name_of(d)) s.does = d;
            to_.add(s);
            open_.erase(begun);
        }
    }

    sink& to_;
    std::unordered_map<std::uint64_t, std::string> names_;
    std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::int64_t>> open_;
};

}  // namespace

bool is_perfetto(const std::string& path) {
    char first = 0;
    return inspect::regular_file{path}.get(0, first) && first == packet_tag;
}

// Packet by packet, so that the file may be larger than the memory.
void read_perfetto(const std::string& path, sink& to) {
    const inspect::regular_file file{path};
    reader r{to};
    std::string bytes;
    try {
        for (std::uint64_t at = 0; at < file.size();) {
            char head[1 + protozero::max_varint_length];
            const std::size_t n = file.read(at, head, sizeof head);
            const char* begin = head + 1;
            if (n == 0 || head[0] != packet_tag) throw protozero::unknown_pbf_wire_type_exception{};
            const std::uint64_t length = protozero::decode_varint(&begin, head + n);
            at += static_cast<std::uint64_t>(begin - head);
            if (length > packet_most) throw protozero::invalid_length_exception{};
            bytes.resize(length);
            if (file.read(at, bytes.data(), length) != length)
                throw protozero::end_of_buffer_exception{};
            at += length;
            r.packet(pbf_reader{bytes.data(), bytes.size()});
        }
    } catch (const protozero::exception&) {
        throw std::runtime_error{fmt::format("{} is cut off, or no trace of Perfetto's", path)};
    }
}

}  // namespace tool::tracing
