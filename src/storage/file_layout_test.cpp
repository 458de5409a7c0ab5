// What file systems say about a file's striping, against attributes built here by the published structures: no Lustre or CephFS is
// asked, and how they would answer is believed.
#include "storage/file_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace ioweir::storage {
namespace {

template <typename T>
std::string raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string lov(std::uint32_t magic, std::uint32_t size, std::uint16_t count, std::uint32_t pattern = 1) {
    std::string text =
        raw(magic) + raw(pattern) + std::string(16, 'i') + raw(size) + raw(count) + raw<std::uint16_t>(7);
    if (magic == 0x0BD30BD0) text += std::string("pool\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    for (std::uint32_t i = 0; i < count && count < 1000; ++i)
        text += std::string(16, 'o') + raw<std::uint32_t>(0) + raw(i + 40);
    return text;
}

struct Part {
    std::uint64_t begin, end;
    std::uint32_t flags;
    std::string blob;
};

std::string composite(const std::vector<Part>& parts) {
    std::string entries, blobs;
    const std::size_t blobs_begin = 32 + 48 * parts.size();
    for (const Part& part : parts) {
        entries += raw<std::uint32_t>(1) + raw(part.flags) + raw(part.begin) + raw(part.end) +
                   raw(static_cast<std::uint32_t>(blobs_begin + blobs.size())) +
                   raw(static_cast<std::uint32_t>(part.blob.size())) + std::string(16, '\0');
        blobs += part.blob;
    }
    const std::string head = raw<std::uint32_t>(0x0BD60BD0) +
                             raw(static_cast<std::uint32_t>(32 + entries.size() + blobs.size())) +
                             raw<std::uint32_t>(1) + raw<std::uint16_t>(0) +
                             raw(static_cast<std::uint16_t>(parts.size())) + std::string(16, '\0');
    return head + entries + blobs;
}

using Attributes = std::map<std::string, std::string>;

FileLayout layout_of(const Attributes& attributes) {
    return read_layout([&](const char* name, void* value, std::size_t room) -> std::int64_t {
        const auto found = attributes.find(name);
        if (found == attributes.end()) return -EOPNOTSUPP;
        if (found->second.size() > room) return -ERANGE;
        std::memcpy(value, found->second.data(), found->second.size());
        return static_cast<std::int64_t>(found->second.size());
    });
}

TEST(FileLayout, NobodyTellsOnOrdinaryFileSystems) { EXPECT_EQ(layout_of({}), FileLayout{}); }

TEST(FileLayout, LustreTellsStripesInBothVersions) {
    EXPECT_EQ(layout_of({{"lustre.lov", lov(0x0BD10BD0, 1 << 20, 8)}}), (FileLayout{1 << 20, 8, Teller::lustre}));
    EXPECT_EQ(layout_of({{"lustre.lov", lov(0x0BD30BD0, 4 << 20, 3)}}), (FileLayout{4 << 20, 3, Teller::lustre}));
    // Not given objects yet, over all targets: how many these are, it does not say.
    EXPECT_EQ(layout_of({{"lustre.lov", lov(0x0BD10BD0, 65536, 0xffff)}}), (FileLayout{65536, 0, Teller::lustre}));
}

TEST(FileLayout, OfACompositeLayoutThePartThatGoesFurthest) {
    const std::string small = lov(0x0BD10BD0, 1 << 20, 1), middle = lov(0x0BD30BD0, 1 << 20, 4),
                      large = lov(0x0BD10BD0, 4 << 20, 16);
    EXPECT_EQ(
        layout_of(
            {{"lustre.lov",
              composite({{0, 1 << 20, 16, small}, {1 << 20, 1 << 30, 16, middle}, {1 << 30, UINT64_MAX, 0, large}})}}),
        (FileLayout{4 << 20, 16, Teller::lustre}));
    // A stale mirror does not count, nor a part on the metadata server.
    EXPECT_EQ(layout_of({{"lustre.lov", composite({{0, UINT64_MAX, 16, middle}, {4096, UINT64_MAX, 1, large}})}}),
              (FileLayout{1 << 20, 4, Teller::lustre}));
    EXPECT_EQ(layout_of({{"lustre.lov", composite({{0, 65536, 16, lov(0x0BD10BD0, 65536, 0, 0x100)},
                                                   {65536, UINT64_MAX, 16, small}})}}),
              (FileLayout{1 << 20, 1, Teller::lustre}));
}

TEST(FileLayout, WhatCannotBeUnderstoodIsAsIfNobodyTold) {
    const std::string whole = composite({{0, UINT64_MAX, 16, lov(0x0BD10BD0, 1 << 20, 2)}});
    for (std::size_t length = 0; length < whole.size(); ++length) {
        const FileLayout found = layout_of({{"lustre.lov", whole.substr(0, length)}});
        EXPECT_TRUE(found == FileLayout{} || found == (FileLayout{1 << 20, 2, Teller::lustre})) << length;
    }
    EXPECT_EQ(layout_of({{"lustre.lov", std::string(64, '\xff')}}), FileLayout{});
    EXPECT_EQ(layout_of({{"lustre.lov", lov(0x0BD10BD0, 0, 4)}}), FileLayout{});
    EXPECT_EQ(layout_of({{"ceph.file.layout.stripe_unit", "none"}}), FileLayout{});
    EXPECT_EQ(layout_of({{"ceph.file.layout.stripe_unit", "-5"}}), FileLayout{});
}

TEST(FileLayout, CephFsTellsStripesOrObjects) {
    Attributes attributes{{"ceph.file.layout.stripe_unit", "65536"},
                          {"ceph.file.layout.stripe_count", "4"},
                          {"ceph.file.layout.object_size", "4194304"}};
    EXPECT_EQ(layout_of(attributes), (FileLayout{65536, 4, Teller::cephfs}));
    attributes["ceph.file.layout.stripe_count"] = "1";
    EXPECT_EQ(layout_of(attributes), (FileLayout{4194304, 0, Teller::cephfs}));
}

TEST(FileLayout, CephFsIsToldInOnePieceAndOthersAreNot) {
    std::string told;
    const auto write = [&](const char* name, const void* value, std::size_t bytes) {
        told = std::string(name) + ": " + std::string(static_cast<const char*>(value), bytes);
        return 0;
    };
    EXPECT_EQ(write_layout({1 << 20, 8, Teller::nobody}, {1 << 20, 8, Teller::lustre}, write), ENOTSUP);
    EXPECT_EQ(write_layout({1 << 20, 8, Teller::nobody}, {}, write), ENOTSUP);
    EXPECT_EQ(told, "");
    EXPECT_EQ(write_layout({1 << 20, 8, Teller::nobody}, {4 << 20, 0, Teller::cephfs}, write), 0);
    EXPECT_EQ(told, "ceph.file.layout: stripe_unit=1048576 stripe_count=8 object_size=4194304");
    EXPECT_EQ(write_layout({8 << 20, 0, Teller::nobody}, {4 << 20, 0, Teller::cephfs}, write), 0);
    EXPECT_EQ(told, "ceph.file.layout: stripe_unit=8388608 stripe_count=1 object_size=8388608");
    const auto refuse = [](const char*, const void*, std::size_t) { return -EPERM; };
    EXPECT_EQ(write_layout({1 << 20, 8, Teller::nobody}, {4 << 20, 0, Teller::cephfs}, refuse), EPERM);
}

}  // namespace
}  // namespace ioweir::storage
