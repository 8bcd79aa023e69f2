// SPDX-License-Identifier: MIT
#pragma once

// ums/net.hpp: typed sockets: includes every header of ums::net.
//
// Each of the headers below states its own contract. ums/io.hpp has the system calls that they are
// built on.

#include "ums/connect.hpp"
#include "ums/datagram.hpp"
#include "ums/endpoint.hpp"
#include "ums/listener.hpp"
#include "ums/resolve.hpp"
#include "ums/stream.hpp"
