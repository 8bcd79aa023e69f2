// SPDX-License-Identifier: MIT
#pragma once

// carry/detect/no_detector.hpp: finds nothing. What the program marks as blocking is known all the
// same.

#include "carry/detect/detector.hpp"

namespace ums::carry {

class no_detector final : public detector {
public:
    [[nodiscard]] std::string start() override { return {}; }
    void stop() noexcept override {}
    void add(load&) override {}
    void remove(load&) noexcept override {}
    [[nodiscard]] detector_kind kind() const noexcept override { return detector_kind::none; }
};

}  // namespace ums::carry
