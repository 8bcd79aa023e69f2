// SPDX-License-Identifier: MIT
#include "ums/endpoint.hpp"

#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "io/net/names.hpp"

namespace {

using namespace ums::net;

// Another program's: unix_socket() refuses so long a path.
TEST(endpoint_test, a_unix_path_without_room_for_a_zero_byte_is_read_to_its_end) {
    std::string path = "/tmp/ums-endpoint-test-" + std::to_string(::getpid()) + '-';
    path.resize(108, 'x');
    sockaddr_un a{};
    static_assert(sizeof a.sun_path == 108);
    a.sun_family = AF_UNIX;
    std::memcpy(a.sun_path, path.data(), path.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a), 0);
    const endpoint local = name_of(fd, SYS_getsockname).value();
    EXPECT_GT(local.size(), sizeof a);
    EXPECT_EQ(local.text(), "unix:" + path);
    EXPECT_EQ(file_of(local), path);
    ::close(fd);
    ::unlink(path.c_str());
}

TEST(endpoint_test, no_size_goes_beyond_the_storage) {
    endpoint e = endpoint::loopback(80);
    e.resize(endpoint::capacity + 1);
    EXPECT_EQ(e.size(), endpoint::capacity);
    EXPECT_EQ(e, endpoint{e});
}

}  // namespace
