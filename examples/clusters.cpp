// SPDX-License-Identifier: MIT

// clusters: two sets of processors. A fiber goes to the other one for a long computation and then
// comes back, so that the other fibers of its own cluster keep their processors.
//
// Output:
//   begins on a kernel thread of "main"
//   computes on a kernel thread of "background"
//   the sum is 500000500000
//   ends on a kernel thread of "main"

#include <cstdio>
#include <string_view>
#include <sys/prctl.h>

#include <ums/ums.hpp>

namespace {

// The runtime names its kernel threads after their cluster and processor: "ums main/0". This asks
// by a system call, because compilers take pthread_self() for a constant, and keep the one from
// before the switch.
void show_where(const char* what) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    const bool back = std::string_view{name}.starts_with("ums back");
    std::printf("%s on a kernel thread of \"%s\"\n", what, back ? "background" : "main");
}

}  // namespace

int main() {
    ums::run([] {
        ums::cluster background{ums::cluster_options{.name = "background", .processors = 2}};
        auto sum = ums::spawn([&background] {
            show_where("begins");
            ums::this_fiber::migrate(background);
            show_where("computes");
            long total = 0;
            for (long i = 1; i <= 1'000'000; ++i) total += i;
            std::printf("the sum is %ld\n", total);
            ums::this_fiber::migrate(ums::cluster::standard());
            show_where("ends");
        });
        sum.join();
    });  // The cluster was destroyed before: its destructor waits until it has no fiber left.
}
