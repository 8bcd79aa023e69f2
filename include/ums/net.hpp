// SPDX-License-Identifier: MIT
#pragma once

// ums/net.hpp: sockets with types. See each.

#include "ums/connect.hpp"
#include "ums/datagram.hpp"
#include "ums/endpoint.hpp"
#include "ums/listener.hpp"
#include "ums/resolve.hpp"
#include "ums/stream.hpp"
