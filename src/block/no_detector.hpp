// SPDX-License-Identifier: MIT
#pragma once

// block/no_detector.hpp: finds nothing. What the program marks as blocking is known anyhow.

#include "block/detector.hpp"

namespace ums::block {

class no_detector final : public detector {
public:
    [[nodiscard]] std::string start(int) override { return {}; }
    void stop() noexcept override {}
    void add(watched&) override {}
    void remove(watched&) noexcept override {}
    [[nodiscard]] detector_kind kind() const noexcept override { return detector_kind::none; }
};

}  // namespace ums::block
