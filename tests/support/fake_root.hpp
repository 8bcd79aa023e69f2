// SPDX-License-Identifier: MIT
#pragma once

// support/fake_root.hpp: a folder that stands for the root of the file system.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

class fake_root {
public:
    explicit fake_root(const std::map<std::string, std::string>& files) {
        char made[] = "/tmp/ums-root-XXXXXX";
        if (::mkdtemp(made) == nullptr) std::abort();
        path = made;
        for (const auto& [name, text] : files) put(name, text);
    }
    ~fake_root() { std::filesystem::remove_all(path); }
    fake_root(const fake_root&) = delete;
    fake_root& operator=(const fake_root&) = delete;

    // In one step, because another thread may read it meanwhile.
    void put(const std::string& name, const std::string& text) const {
        const std::filesystem::path at{path + name};
        std::filesystem::create_directories(at.parent_path());
        std::ofstream{at.string() + ".new"} << text;
        std::filesystem::rename(at.string() + ".new", at);
    }

    std::string path;
};
