// SPDX-License-Identifier: MIT
#include "assets.hpp"

extern "C" {
extern const char ums_asset_page[], ums_asset_page_end[];
extern const char ums_asset_style[], ums_asset_style_end[];
extern const char ums_asset_script[], ums_asset_script_end[];
extern const char ums_asset_chart[], ums_asset_chart_end[];
}

namespace tool::assets {

std::string_view page() { return {ums_asset_page, ums_asset_page_end}; }
std::string_view style() { return {ums_asset_style, ums_asset_style_end}; }
std::string_view script() { return {ums_asset_script, ums_asset_script_end}; }
std::string_view chart_library() { return {ums_asset_chart, ums_asset_chart_end}; }

}  // namespace tool::assets
