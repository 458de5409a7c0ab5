// The node's trace file in a folder that others may write into: what they put in its place is neither opened nor written.
#include "tracer/ring/node_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/testing.hpp"

namespace ioweir::tracer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t chunk = format::chunk_alignment;
constexpr std::uint64_t quota = std::uint64_t{1} << 40;

void spill(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(NodeFileTest, ProcessesOfAUserShareIt) {
    const TemporaryFolder folder;
    NodeFile first, second;
    ASSERT_EQ(first.attach(folder.path().c_str(), false), 0);
    ASSERT_EQ(second.attach(folder.path().c_str(), false), 0);
    const auto one = first.allocate(chunk, quota), other = second.allocate(chunk, quota);
    ASSERT_EQ(one.error, 0);
    ASSERT_EQ(other.error, 0);
    EXPECT_NE(one.header->self_offset, other.header->self_offset);
    struct stat status{};
    ASSERT_EQ(::stat(first.path(), &status), 0);
    EXPECT_EQ(status.st_mode & (S_IWGRP | S_IWOTH), 0U);
}

TEST(NodeFileTest, WhatTakesItsPlaceIsNotWritten) {
    const TemporaryFolder folder;
    NodeFile file;
    ASSERT_EQ(file.attach(folder.path().c_str(), false), 0);
    const auto held = file.allocate(2 * chunk, quota);
    ASSERT_EQ(held.error, 0);
    const std::string name = file.path(), victim = folder.file("victim");
    ASSERT_EQ(::rename(name.c_str(), folder.file("moved").c_str()), 0);
    spill(victim, "precious");

    EXPECT_EQ(file.allocate(chunk, quota).error, ENOENT);
    fs::create_symlink(victim, name);
    EXPECT_EQ(file.allocate(chunk, quota).error, ELOOP);
    EXPECT_FALSE(file.give_back(held.header, chunk));
    fs::remove(name);
    fs::create_hard_link(victim, name);
    EXPECT_EQ(file.allocate(chunk, quota).error, ESTALE);
    EXPECT_FALSE(file.give_back(held.header, chunk));
    fs::remove(name);
    ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
    EXPECT_EQ(file.allocate(chunk, quota).error, ESTALE);
    fs::remove(name);
    EXPECT_EQ(slurp(victim), "precious");

    // The file itself under its name again: all goes on.
    ASSERT_EQ(::rename(folder.file("moved").c_str(), name.c_str()), 0);
    EXPECT_EQ(file.allocate(chunk, quota).error, 0);
}

}  // namespace
}  // namespace ioweir::tracer
