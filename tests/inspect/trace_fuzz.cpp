// SPDX-License-Identifier: MIT
//
// A file made of bytes, as `ums trace FILE` and `ums trace summary FILE` read it: the dump that
// UMS_TRACE names, or a trace.
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "bytes_file.hpp"
#include "trace/chrome.hpp"
#include "trace/dump_file.hpp"
#include "trace/perfetto.hpp"
#include "trace/summary.hpp"
#include "trace/timeline.hpp"

namespace {

using namespace tool::tracing;

void tell_to(const recording& what, sink& to) {
    (void)tell(
        what, 0, {}, [](tool::inspect::address at) { return std::to_string(at); }, to);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const bytes_file file{data, size};
    static std::FILE* const nowhere = std::fopen("/dev/null", "w");
    try {
        summary sum;
        if (is_dump(file.path())) {
            const dump d = read_dump(file.path());
            tell_to(d.what, sum);
            chrome_file chrome{nowhere, d.what.process, d.of->title()};
            tell_to(d.what, chrome);
            perfetto_file perfetto{nowhere, d.what.process, d.of->title()};
            tell_to(d.what, perfetto);
        } else if (is_perfetto(file.path())) {
            read_perfetto(file.path(), sum);
        }
        (void)sum.json();
    } catch (const std::runtime_error&) {  // In one line, why not.
    }
    return 0;
}
