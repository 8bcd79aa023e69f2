// SPDX-License-Identifier: MIT

#include "options.hpp"

#include <string>
#include <vector>

#include "support/child.hpp"

namespace {

using namespace memcached;

const child_program reads{"reads", [](const child_arguments& arguments) {
                              std::vector<std::string> strings{"memcached-server"};
                              strings.insert(strings.end(), arguments.begin(), arguments.end());
                              std::vector<char*> words;
                              for (std::string& s : strings) words.push_back(s.data());
                              words.push_back(nullptr);
                              (void)read_options(static_cast<int>(strings.size()), words.data());
                              return 0;
                          }};

TEST(options_test, what_cannot_be_used_is_named_in_one_line) {
    struct sample {
        child_arguments words;
        std::string_view says;
    };
    for (const auto& [words, says] :
         std::vector<sample>{{{"-a", "999"}, "-a is '999'; expected an octal number from 0 to 777"},
                             {{"-a", "1000"}, "from 0 to 777"},
                             {{"-l", "foo"}, "-l is 'foo'; expected an IP address"},
                             {{"-l", "unix:/x"}, "-l is 'unix:/x'; expected an IP address"},
                             {{"-l", "127.0.0.1,foo:1"}, "-l is 'foo:1'"},
                             {{"-p", "65536"}, "-p is '65536'; expected a number from 0 to 65535"},
                             {{"-m", "1", "-I", "2m"}, "-I is larger than -m"},
                             {{"-c"}, "-c needs a value"},
                             {{"-p", "-2"}, "-p is '-2'"},
                             {{"-U", "65536"}, "-U is '65536'"},
                             {{"-p", "0"}, "nothing to listen on"},
                             {{"-p", "0", "-U", "0"}, "nothing to listen on"},
                             {{"--frobnicate"}, "--frobnicate"},
                             // Options of memcached that would do nothing here.
                             {{"-C"}, "there is no option -C"},
                             {{"-d"}, "there is no option -d"},
                             {{"-v"}, "there is no option -v"},
                             {{"-u", "nobody"}, "there is no option -u"},
                             {{"-B", "ascii"}, "there is no option -B"},
                             {{"-R", "20"}, "there is no option -R"},
                             {{"-o", "idle_timeout=10"}, "there is no option -o"},
                             {{"-o", "read_buf_mem_limit=1"}, "there is no option -o"},
                             {{"--disable-cas"}, "there is no option --disable-cas"},
                             {{"word"}, "'word'"}}) {
        const child_end end = run_child("reads", words);
        EXPECT_EQ(end.code, 64) << end;
        EXPECT_EQ(end.err_lines(), 1u) << end;
        EXPECT_NE(end.err.find(says), std::string::npos) << end;
    }
}

TEST(options_test, addresses_may_have_a_port) {
    for (const child_arguments& words :
         std::vector<child_arguments>{{"-p", "0", "-U", "-1"},
                                      {"-p", "0", "-s", "/x"},
                                      {"-l", "127.0.0.1"},
                                      {"-l", "::1,127.0.0.1:80"},
                                      {"-l", "[::1]:80", "-a", "777"}}) {
        const child_end end = run_child("reads", words);
        EXPECT_EQ(end.code, 0) << end;
    }
    EXPECT_EQ(read_address("127.0.0.1", 7).value().text(), "127.0.0.1:7");
    EXPECT_EQ(read_address("127.0.0.1:80", 7).value().text(), "127.0.0.1:80");
    EXPECT_EQ(read_address("foo", 7).error(), std::errc::invalid_argument);
}

}  // namespace
