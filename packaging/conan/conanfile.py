# SPDX-License-Identifier: MIT
"""The recipe for Conan 2: docs/install.md has the command. It builds what is checked out or was
unpacked, then test_package with it.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Libums(ConanFile):
    name = "libums"
    description = "User-mode scheduling for Linux"
    license = "MIT"
    topics = ("fibers", "scheduler", "coroutines", "concurrency")
    # No package_type and no option "shared": each package has both libraries, as CMake targets.
    settings = "os", "arch", "compiler", "build_type"

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "../../CMakeLists.txt"))
        self.version = re.search(r"project\(ums VERSION ([0-9.]+)", text)[1]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "../..")
        for pattern in (
            "CMakeLists.txt",
            "LICENSE",
            "cmake/*",
            "compat/*",
            "include/*",
            "src/*",
            "tools/debuggers/*",
            "tools/man/*",
        ):
            copy(self, pattern, root, self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch != "x86_64":
            raise ConanInvalidConfiguration("libums is for Linux on x86-64")
        if self.settings.compiler.get_safe("cppstd"):
            check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for what in ("TESTS", "BENCH", "TOOLS", "EXAMPLES", "MPI"):
            toolchain.cache_variables[f"UMS_BUILD_{what}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The project's own package for CMake is used, with its targets.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "ums")]
        self.cpp_info.set_property("pkg_config_name", "ums")
        self.cpp_info.libs = ["ums"]
        # As the CMake package and ums.pc have it.
        self.cpp_info.cflags = self.cpp_info.cxxflags = ["-fstack-clash-protection"]
        self.cpp_info.system_libs = ["pthread", "stdc++", "m"]
