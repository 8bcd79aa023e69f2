// SPDX-License-Identifier: MIT

// memcached: the load: gets or sets of 10,000 keys of 16 bytes, with values of 100 bytes. All keys
// are set first, so that every get finds its value.

#include "../servers/load.hpp"

namespace {

constexpr std::size_t keys = 10'000;
constexpr std::size_t value_bytes = 100;

class dialogue {
public:
    explicit dialogue(bool is_get) : is_get_{is_get} {
        for (std::size_t i = 0; i < keys; ++i) {
            char key[32];
            std::snprintf(key, sizeof key, "key:%012zu", i);
            const std::string value(value_bytes, static_cast<char>('a' + i % 26));
            gets_.push_back("get " + std::string{key} + "\r\n");
            sets_.push_back("set " + std::string{key} + " 0 0 " + std::to_string(value_bytes) +
                            "\r\n" + value + "\r\n");
        }
        const std::string about =
            "VALUE key:000000000000 0 " + std::to_string(value_bytes) + "\r\n";
        found_bytes_ = about.size() + value_bytes + found.size();
    }

    void fill(std::uint16_t port) const {
        const int socket = bench::connect_to(port, 0, 0);
        constexpr std::size_t at_once = 100;
        for (std::size_t i = 0; i < keys; i += at_once) {
            std::string all, wanted;
            for (std::size_t j = i; j < i + at_once; ++j) {
                all += sets_[j];
                wanted += stored;
            }
            bench::checked(static_cast<int>(send(socket, all.data(), all.size(), MSG_NOSIGNAL)),
                           "send");
            std::string got;
            while (got.size() < wanted.size()) {
                char buffer[4096];
                const auto n = recv(socket, buffer, sizeof buffer, 0);
                bench::checked(static_cast<int>(n), "recv");
                if (n == 0) throw std::runtime_error{"the server closed the first connection"};
                got.append(buffer, static_cast<std::size_t>(n));
            }
            if (got != wanted) throw std::runtime_error{"the server did not store a value"};
        }
        close(socket);
    }

    void batch(std::uint64_t n, std::string& out) {
        const auto& requests = is_get_ ? gets_ : sets_;
        while (n-- > 0) {
            next_ = (next_ + 7919) % keys;  // A prime: all keys, and not one after the other.
            out += requests[next_];
        }
    }
    std::size_t response_bytes() const { return is_get_ ? found_bytes_ : stored.size(); }
    bool check(std::string_view first, std::string_view last) const {
        const auto begin = is_get_ ? std::string_view{"VALUE key:"} : stored;
        const auto end = is_get_ ? found : stored;
        const auto n = std::min(first.size(), begin.size());
        return first.substr(0, n) == begin.substr(0, n) &&
               (last.size() < end.size() || last.ends_with(end));
    }

private:
    static constexpr std::string_view stored = "STORED\r\n";
    static constexpr std::string_view found = "\r\nEND\r\n";

    bool is_get_;
    std::vector<std::string> gets_, sets_;
    std::size_t found_bytes_;
    std::size_t next_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const bench::load_settings how{in};
        const auto way = in.word("way", {"get", "set"});
        in.done();
        dialogue words{way == "get"};
        words.fill(how.port);
        bench::load{how, words}.run(out);
    });
}
