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
#include "partition/core/block_header.hpp"
#include "partition/core/manifest.hpp"
#include "partition/core/master_header.hpp"
#include "partition/files/names.hpp"

namespace ioweir::partition {

class SetsTest : public testing::Test {
protected:
    SetsTest() {
        std::string pattern = testing::TempDir() + "ioweir-sets-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
        base_ = folder_ + "/run";
    }
    ~SetsTest() override { std::filesystem::remove_all(folder_); }

    /// Part `first` and those after it, with one field "u" of `part` bytes of the letter for the part.
    static std::string file_bytes(Span parts) {
        MasterHeader header;
        header.fields = {"u"};
        header.parts = parts.count;
        header.bytes = master_header_bytes(1, parts.count).value();
        std::vector<std::uint64_t> offsets;
        std::string data;
        for (std::int64_t part = parts.first; part < parts.end(); ++part) {
            offsets.push_back(static_cast<std::uint64_t>(header.bytes + std::ssize(data)));
            const std::string items(static_cast<std::size_t>(8 * part), static_cast<char>('a' + part));
            data += encode_block_header({"u", part + 1, std::ssize(items), {part}}).value() + items;
        }
        std::string bytes = encode_front(header).value() + encode_table({offsets});
        bytes.resize(static_cast<std::size_t>(header.bytes), '\0');
        return bytes + data;
    }
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
