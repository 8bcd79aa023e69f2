// SPDX-License-Identifier: MIT
#pragma once

// ums/ums.hpp: everything.

#include "ums/cluster.hpp"
#include "ums/condition_variable.hpp"
#include "ums/deadline.hpp"
#include "ums/fiber.hpp"
#include "ums/fiber_ref.hpp"
#include "ums/jfiber.hpp"
#include "ums/mutex.hpp"
#include "ums/options.hpp"
#include "ums/policy.hpp"
#include "ums/run.hpp"
#include "ums/shared_mutex.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"
#include "ums/value_fiber.hpp"
