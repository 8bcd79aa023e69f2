// SPDX-License-Identifier: MIT
#pragma once

// support/error_of.hpp: which error a call throws.

#include <string_view>
#include <system_error>

#include <gtest/gtest.h>

// Returns zero if the call returns. The error's text must contain `says`.
template <class Call>
std::errc error_of(Call call, std::string_view says = "") {
    try {
        call();
    } catch (const std::system_error& e) {
        EXPECT_NE(std::string_view{e.what()}.find(says), std::string_view::npos) << e.what();
        return static_cast<std::errc>(e.code().value());
    }
    return {};
}
