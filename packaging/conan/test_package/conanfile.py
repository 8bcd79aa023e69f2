# SPDX-License-Identifier: MIT
"""Builds the programs of tests/consumer against the package, and runs them."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain", "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure(
            build_script_folder=os.path.join(self.recipe_folder, "../../../tests/consumer")
        )
        cmake.build()

    def test(self):
        if can_run(self):
            for program in (
                "static",
                "shared",
                "c_static",
                "c_shared",
                "windows",
                "windows_shared",
            ):
                self.run(os.path.join(self.build_folder, program), env="conanrun")
