// SPDX-License-Identifier: MIT
#pragma once

// runtime/root.hpp: where a debugger, a core-dump reader or `ums ps` begins.
//
// One constant describes the layout of the runtime's structures and names its roots. It is found
// through an ELF note (name "libums", type 1) that every program or library with libums inside
// carries in a PT_NOTE segment, so it survives strip(1) and static linking, and is there in the
// process's memory, in its core dumps and in the file. The note holds the distance from itself to
// the constant, 64 bits. Where there are dynamic symbols the constant is also exported: ums_root.
//
// A program that uses the UMS API has another such constant, for the layout of its workers
// (workers/root.cpp), which a note of type 2 names.
//
// Readers look places and values up by their names. A name keeps its meaning; one that is missing
// means that this libums does not have the thing. `version` changes only if this struct does.
//
// From the slabs a reader finds every fiber by arithmetic alone. Nothing is stopped and nothing
// locked, so a reader of a live process must expect everything to change under its eyes.

#include <cstddef>
#include <cstdint>

namespace ums::rt {

// A text that is too long is not a constant expression.
template <std::size_t n>
consteval void copy_text(char (&to)[n], const char* from) {
    std::size_t i = 0;
    for (; from[i] != 0; ++i) to[i] = from[i];
    to[i] = 0;
}

// An offset, a size or a constant.
struct root_value {
    char name[28];
    std::uint32_t value;
};

// The address of a variable.
struct root_place {
    char name[24];
    const void* at;
};

struct root {
    static constexpr unsigned values_most = 120, places_most = 8;

    char magic[8];          // "umsroot"
    std::uint32_t version;  // The version of this struct: 2.
    std::uint32_t bytes;    // sizeof(root)
    char library[16];       // The version of libums.
    std::uint32_t value_count, place_count;
    root_place places[places_most];
    root_value values[values_most];

    // For the code that makes one. With too many names this is not a constant expression.
    consteval root(const char (&kind)[8], const char* version_of_library)
        : magic{},
          version{2},
          bytes{sizeof(root)},
          library{},
          value_count{0},
          place_count{0},
          places{},
          values{} {
        copy_text(magic, kind);
        copy_text(library, version_of_library);
    }
    consteval void value(const char* name, std::size_t v) {
        root_value& next = values[value_count++];
        copy_text(next.name, name);
        next.value = static_cast<std::uint32_t>(v);
    }
    consteval void place(const char* name, const void* at) {
        root_place& next = places[place_count++];
        copy_text(next.name, name);
        next.at = at;
    }
};

}  // namespace ums::rt

extern "C" const ums::rt::root ums_root;
