// SPDX-License-Identifier: MIT
//
// A key-value store on any number of ranks. Each rank speaks memcached's text protocol, with a
// fiber a client, and keeps the keys whose hash is its own: a shard. A command for another shard
// goes there as an MPI message, and the client's fiber waits for the answer.
//
//   mpirun -n 2 mpi-store-openmpi [PORT]       rank R listens on 127.0.0.1:PORT+R; until SIGTERM
//   mpirun -n 2 mpi-store-openmpi --check [CLIENTS [ROUNDS]]
//                                              speaks to itself, checks the answers, and ends
//
// The store and the commands are those of examples/memcached.

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include "session.hpp"
#include "stop_signals.hpp"
#include "ums/event.hpp"
#include "ums/fiber.hpp"
#include "ums/listener.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/stream.hpp"
#include "ums/wait_group.hpp"

namespace {

constexpr std::size_t most_value_bytes = 1 << 20;

int rank_in(MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}
int ranks_in(MPI_Comm comm) {
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    return ranks;
}

// The keys of this rank.
class shard {
public:
    // Returns the answers to complete commands.
    std::string execute(std::string_view commands) {
        memcached::session one{all_};
        memcached::replies answers;
        std::string text;
        while (!commands.empty() && !one.is_over()) {
            const std::size_t taken = one.take(commands, answers);
            commands.remove_prefix(taken);
            const std::size_t before = text.size();
            add(answers, text);
            if (taken == 0 && text.size() == before) break;
        }
        return text;
    }

private:
    static void add(memcached::replies& answers, std::string& text) {
        iovec pieces[8];
        while (const unsigned n = answers.pieces(pieces, 8)) {
            std::size_t bytes = 0;
            for (unsigned i = 0; i < n; ++i) {
                text.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
                bytes += pieces[i].iov_len;
            }
            answers.sent(bytes);
        }
        answers.clear();
    }

    memcached::clock time_;
    memcached::store items_;
    memcached::service all_{items_, time_};
};

// All shards, as this rank sees them.
class shards {
public:
    // Collective: on all ranks.
    shards() {
        MPI_Comm_dup(MPI_COMM_WORLD, &requests_);
        MPI_Comm_dup(MPI_COMM_WORLD, &answers_);
        ranks_ = ranks_in(requests_);
        rank_ = rank_in(requests_);
    }
    shards(const shards&) = delete;
    shards& operator=(const shards&) = delete;

    // Serves the other ranks until stop(). So many fibers do, because each waits for its answer's
    // receiver.
    void start() {
        for (int i = 0; i < servers; ++i) fibers_.emplace_back([this] { serve(); });
    }
    // Collective: no rank asks any more.
    void stop() {
        MPI_Barrier(answers_);
        for (int i = 0; i < servers; ++i) MPI_Send(nullptr, 0, MPI_CHAR, rank_, 0, requests_);
        for (ums::fiber& each : fibers_) each.join();
        MPI_Comm_free(&requests_);
        MPI_Comm_free(&answers_);
    }

    // `asks`: a number below 30,000 that no other fiber of this rank has meanwhile.
    std::string ask(std::string_view key, std::string_view command, int asks) {
        const int owner =
            static_cast<int>(std::hash<std::string_view>{}(key) % static_cast<std::size_t>(ranks_));
        if (owner == rank_) return own_.execute(command);
        MPI_Send(command.data(), static_cast<int>(command.size()), MPI_CHAR, owner, asks + 1,
                 requests_);
        std::string answer;
        receive(owner, asks, answers_, answer);
        return answer;
    }
    std::string execute_here(std::string_view command) { return own_.execute(command); }

private:
    static constexpr int servers = 16;

    static MPI_Status receive(int from, int tag, MPI_Comm comm, std::string& text) {
        MPI_Message message;
        MPI_Status s;
        MPI_Mprobe(from, tag, comm, &message, &s);
        int bytes = 0;
        MPI_Get_count(&s, MPI_CHAR, &bytes);
        text.resize(static_cast<std::size_t>(bytes));
        MPI_Mrecv(text.data(), bytes, MPI_CHAR, &message, MPI_STATUS_IGNORE);
        return s;
    }

    // The tag says which fiber of the source asks, 0 that there is nothing more.
    void serve() {
        std::string command;
        for (;;) {
            const MPI_Status s = receive(MPI_ANY_SOURCE, MPI_ANY_TAG, requests_, command);
            if (s.MPI_TAG == 0) return;
            const std::string answer = own_.execute(command);
            MPI_Send(answer.data(), static_cast<int>(answer.size()), MPI_CHAR, s.MPI_SOURCE,
                     s.MPI_TAG - 1, answers_);
        }
    }

    shard own_;
    MPI_Comm requests_, answers_;
    int rank_, ranks_;
    std::vector<ums::fiber> fibers_;
};

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t end = std::min(line.find(' ', at), line.size());
        if (end > at) words.push_back(line.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

bool takes_value(std::string_view verb) {
    for (const char* each : {"set", "add", "replace", "append", "prepend", "cas"})
        if (verb == each) return true;
    return false;
}

// One client, on its fiber. Returns when the client has hung up, or broken the protocol.
void serve_client(shards& all, ums::net::stream peer, int number) {
    std::string input;
    const auto read_more = [&] {
        char buffer[16 * 1024];
        const auto n = peer.read(buffer, sizeof buffer);
        if (!n || *n == 0) return false;
        input.append(buffer, *n);
        return true;
    };
    for (;;) {
        const std::size_t end = input.find("\r\n");
        if (end == std::string::npos) {
            if (input.size() > 64 * 1024 || !read_more()) return;
            continue;
        }
        const std::vector<std::string_view> words = words_of({input.data(), end});
        const std::string verb{words.empty() ? "" : words[0]};
        if (verb == "quit") return;
        std::size_t bytes = end + 2;
        if (takes_value(verb)) {
            std::size_t value = 0;
            const bool is_number =
                words.size() > 4 &&
                std::from_chars(words[4].data(), words[4].data() + words[4].size(), value).ec ==
                    std::errc{};
            if (!is_number || value > most_value_bytes) {
                (void)peer.write_all("CLIENT_ERROR bad command line format\r\n");
                return;
            }
            bytes += value + 2;
            if (input.size() < bytes) {
                if (!read_more()) return;
                continue;
            }
        }
        std::string answer;
        if ((verb == "get" || verb == "gets") && words.size() > 1) {
            for (std::size_t i = 1; i < words.size(); ++i) {
                std::string part =
                    all.ask(words[i], verb + " " + std::string{words[i]} + "\r\n", number);
                if (!part.ends_with("END\r\n")) {
                    answer = part;
                    break;
                }
                if (i + 1 < words.size()) part.resize(part.size() - 5);
                answer += part;
            }
        } else if (words.size() > 1 && verb != "stats" && verb != "verbosity") {
            answer = all.ask(words[1], {input.data(), bytes}, number);
        } else {
            answer = all.execute_here({input.data(), bytes});
        }
        input.erase(0, bytes);
        if (!answer.empty() && !peer.write_all(answer)) return;
    }
}

// Accepts until the door is closed, then waits for the clients.
class front {
public:
    front(shards& all, const ums::net::endpoint& at) : all_{all}, door_{at} {}

    [[nodiscard]] int port() const { return door_.local().value().port(); }

    void run() {
        while (auto peer = door_.accept()) {
            int number = 0;
            {
                const std::lock_guard guard{lock_};
                if (free_.empty()) free_.push_back(most_++);
                number = free_.back();
                free_.pop_back();
            }
            clients_.add();
            ums::fiber{[this, number](ums::net::stream taken) {
                           serve_client(all_, std::move(taken), number);
                           const std::lock_guard guard{lock_};
                           free_.push_back(number);
                           clients_.done();
                       },
                       std::move(*peer)}
                .detach();
        }
        clients_.wait();
    }
    void stop() { (void)door_.close(); }

private:
    shards& all_;
    ums::net::listener door_;
    ums::wait_group clients_;
    ums::mutex lock_;
    // Guarded by lock_:
    std::vector<int> free_;
    int most_ = 0;
};

// --- --check ---

std::atomic<int> wrong{0};

class client {
public:
    explicit client(int port)
        : server_{ums::net::stream::connect(
                      ums::net::endpoint::loopback(static_cast<std::uint16_t>(port)))
                      .value()} {}

    // Sends a command and returns its answer, up to `end`.
    std::string say(const std::string& command, std::string_view end = "\r\n") {
        server_.write_all(command).value();
        while (!input_.ends_with(end)) {
            char buffer[4096];
            const std::size_t n = server_.read(buffer, sizeof buffer).value();
            if (n == 0) return "closed";
            input_.append(buffer, n);
        }
        return std::exchange(input_, {});
    }
    void expect(const std::string& command, std::string_view answer,
                std::string_view end = "\r\n") {
        const std::string got = say(command, end);
        if (got == answer) return;
        ++wrong;
        std::fprintf(stderr, "%s is answered by %s", command.c_str(), got.c_str());
    }

private:
    ums::net::stream server_;
    std::string input_;
};

// Adds one by gets and cas until no other client was faster.
void add_one(client& c) {
    for (;;) {
        const std::string got = c.say("gets cas\r\n", "END\r\n");
        long value = 0;
        unsigned long long unique = 0;
        if (std::sscanf(got.c_str(), "VALUE cas 0 %*d %llu\r\n%ld", &unique, &value) != 2) {
            ++wrong;
            return;
        }
        const std::string next = std::to_string(value + 1);
        if (c.say("cas cas 0 0 " + std::to_string(next.size()) + " " + std::to_string(unique) +
                  "\r\n" + next + "\r\n") == "STORED\r\n")
            return;
    }
}

void speak(int port, const std::string& name, int rounds) {
    client c{port};
    for (int i = 0; i < rounds; ++i) {
        const std::string key = name + "-" + std::to_string(i % 50), value = std::to_string(i);
        const std::string bytes = std::to_string(value.size());
        c.expect("set " + key + " 7 0 " + bytes + "\r\n" + value + "\r\n", "STORED\r\n");
        c.expect("get " + key + "\r\n",
                 "VALUE " + key + " 7 " + bytes + "\r\n" + value + "\r\nEND\r\n", "END\r\n");
        c.say("incr count 1\r\n");
        if (i % 10 == 0) add_one(c);
        if (i % 50 == 49) {
            c.expect("delete " + key + "\r\n", "DELETED\r\n");
            c.expect("get " + key + " count-none\r\n", "END\r\n", "END\r\n");
        }
    }
}

void check(int rank, int ranks, int clients, int rounds, int port) {
    std::vector<int> ports(static_cast<std::size_t>(ranks));
    MPI_Allgather(&port, 1, MPI_INT, ports.data(), 1, MPI_INT, MPI_COMM_WORLD);
    if (rank == 0) {
        client c{port};
        c.expect("set count 0 0 1\r\n0\r\n", "STORED\r\n");
        c.expect("set cas 0 0 1\r\n0\r\n", "STORED\r\n");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    std::vector<ums::fiber> all;
    for (int i = 0; i < clients; ++i)
        all.emplace_back([&, i] {
            speak(ports[static_cast<std::size_t>((rank + i) % ranks)],
                  std::to_string(rank) + "-" + std::to_string(i), rounds);
        });
    for (ums::fiber& each : all) each.join();
    MPI_Barrier(MPI_COMM_WORLD);
    const double took = MPI_Wtime() - begin;
    if (rank != 0) return;
    const auto number_is = [&](const std::string& key, long n) {
        const std::string got = client{port}.say("get " + key + "\r\n", "END\r\n");
        const std::string text = std::to_string(n);
        if (got.find("\r\n" + text + "\r\n") == std::string::npos) {
            ++wrong;
            std::fprintf(stderr, "%s is to be %ld: %s", key.c_str(), n, got.c_str());
        }
    };
    number_is("count", static_cast<long>(ranks) * clients * rounds);
    number_is("cas", static_cast<long>(ranks) * clients * ((rounds + 9) / 10));
    const double commands = 3.0 * ranks * clients * rounds;
    std::printf("%d ranks, %d clients each: %.0f commands a second and more, %s\n", ranks, clients,
                commands / took, wrong == 0 ? "all answers right" : "WRONG ANSWERS");
}

}  // namespace

int main(int argc, char** argv) {
    stop_signals signals;  // Before MPI makes threads.
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    const int rank = rank_in(MPI_COMM_WORLD), ranks = ranks_in(MPI_COMM_WORLD);
    const bool is_checked = argc > 1 && std::string_view{argv[1]} == "--check";
    const auto number = [&](int i, int otherwise) {
        return argc > i ? std::atoi(argv[i]) : otherwise;
    };
    ums::run({.processors = 1}, [&] {
        shards all;
        all.start();
        const int port = is_checked ? 0 : number(1, 11311) + rank;
        front clients{all, ums::net::endpoint::loopback(static_cast<std::uint16_t>(port))};
        ums::fiber accepts{[&] { clients.run(); }};
        if (is_checked) {
            check(rank, ranks, number(2, 20), number(3, 200), clients.port());
        } else {
            std::printf("rank %d listens on port %d\n", rank, clients.port());
            std::fflush(stdout);
            ums::manual_reset_event is_to_end;
            signals.call([&] { is_to_end.set(); });
            is_to_end.wait();
            signals.end();
        }
        clients.stop();
        accepts.join();
        all.stop();
    });
    int all_wrong = 0;
    const int own_wrong = wrong;
    MPI_Allreduce(&own_wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all_wrong != 0;
}
