// SPDX-License-Identifier: MIT

// echo: the load: messages of 64 bytes.

#include "../servers/load.hpp"

namespace {

constexpr std::string_view message =
    "a message of sixty-four bytes which the server has to send back\n";
static_assert(message.size() == 64);

struct dialogue {
    static void batch(std::uint64_t n, std::string& out) {
        while (n-- > 0) out += message;
    }
    static std::size_t response_bytes() { return message.size(); }
    static bool check(std::string_view first, std::string_view last) {
        const auto n = std::min(first.size(), message.size());
        return first.substr(0, n) == message.substr(0, n) &&
               (last.size() < message.size() || last.ends_with(message));
    }
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        bench::load_settings how{in};
        how.is_idle = in.word("way", {"busy", "idle"}) == "idle";
        in.done();
        dialogue words;
        bench::load{how, words}.run(out);
    });
}
