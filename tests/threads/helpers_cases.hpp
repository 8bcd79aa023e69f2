// SPDX-License-Identifier: MIT

// Threads that all run the same function with numbers from zero on.
template <class F>
std::vector<lib::thread> start(int n, const F& run) {
    std::vector<lib::thread> all;
    for (int i = 0; i < n; ++i) all.emplace_back([run, i] { run(i); });
    return all;
}
inline void join(std::vector<lib::thread>& all) {
    for (lib::thread& one : all) one.join();
}
template <class F>
void start_and_join(int n, const F& run) {
    std::vector<lib::thread> all = start(n, run);
    join(all);
}

// Returns when `n` threads have called it: each waits in a loop that calls nothing.
struct spinning_barrier {
    const int n;
    std::atomic<int> arrived{0};
    void arrive_and_spin() {
        ++arrived;
        spin_until([this] { return arrived >= n; });
    }
};
