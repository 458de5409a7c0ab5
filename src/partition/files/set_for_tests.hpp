// A directory for a test's sets, and small whole files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "partition/core/manifest.hpp"
#include "partition/core/master_header.hpp"
#include "partition/files/names.hpp"
#include "partition/files/whole_files.hpp"

namespace ioweir::partition {

class SetsTest : public testing::Test {
protected:
    SetsTest() {
        std::string pattern = testing::TempDir() + "ioweir-sets-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
        base_ = folder_ + "/run";
    }
    ~SetsTest() override { std::filesystem::remove_all(folder_); }

    static Manifest::File said_of(Span parts, const std::string& bytes) {
        const auto header = static_cast<std::size_t>(table_begin + 8 * parts.count);
        return {parts, std::ssize(bytes), checksum(bytes.data(), header)};
    }
    static void spill(const std::string& path, const std::string& bytes) {
        std::ofstream(path, std::ios::binary) << bytes;
    }

    std::string folder_, base_;
};

}  // namespace ioweir::partition
