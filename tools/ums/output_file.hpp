// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/output_file.hpp: a file that is opened before the work and written after it.
//
// What was in the file stays until write(); a file that did not exist is removed again if write()
// is never reached. Errors: usage_error from the constructor, std::system_error from write().

#include <string>
#include <string_view>

namespace tool {

class output_file {
public:
    // `option` is named in errors.
    output_file(std::string_view option, std::string path);
    ~output_file();
    output_file(const output_file&) = delete;
    output_file& operator=(const output_file&) = delete;

    void write(std::string_view text);

private:
    std::string path_;
    int file_ = -1;
    bool is_new_ = false;
    bool is_written_ = false;
};

}  // namespace tool
