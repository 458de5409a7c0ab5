// Extents of requests, on traces that are written here. Against real programs and MPI's own idea of types: tests/trace/test_extents.py.
#include "analysis/requests.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/testing.hpp"
#include "format/writer.hpp"

namespace ioweir::analysis {
namespace {

using format::Constructor;
using format::Function;

class Writer {
public:
    Writer() : writer_(format::NodeWriter::create(folder_.file("node.iowt"), "node", 1'000'000, 0).take()) {
        thread_ = writer_.begin_thread(7, 1, 500, 1000);
        writer_.record(thread_, format::ProcessRecord{{}, {}, {}, 7, 0, 42, 41, 1000}, "/opt/app");
        writer_.record(thread_, format::ClockRecord{{}, {}, {}, 1000, 1000, 1'001'000});
        writer_.record(thread_, format::FileRecord{{}, {}, {}, 1, 0}, "/data/a");
    }
    void type(std::uint32_t number, Constructor constructor, std::int64_t size, std::int64_t extent,
              const std::vector<std::uint32_t>& types, const std::vector<std::int64_t>& values,
              const std::string& name = "") {
        format::TypeRecord record{};
        record.type = number;
        record.constructor = static_cast<std::uint32_t>(constructor);
        record.size = size;
        record.extent = extent;
        record.types = static_cast<std::uint32_t>(types.size());
        record.values = record.count = static_cast<std::uint32_t>(values.size());
        std::string text = name;
        text.append(reinterpret_cast<const char*>(types.data()), types.size() * sizeof(std::uint32_t));
        std::int64_t before = 0;
        for (const std::int64_t value : values) {
            std::byte bytes[10];
            const auto step = format::codec::zigzag(value - before);
            text.append(reinterpret_cast<const char*>(bytes),
                        static_cast<std::size_t>(format::codec::put_varint(bytes, step) - bytes));
            before = value;
        }
        writer_.record(thread_, record, text);
    }
    void view(std::uint32_t number, std::uint32_t etype, std::uint32_t filetype, std::int64_t displacement) {
        writer_.record(thread_, format::ViewRecord{{}, {}, {}, number, etype, filetype, 0, displacement});
    }
    void access(std::uint32_t number, std::uint32_t handle, std::uint32_t view, std::uint32_t memory = 0) {
        writer_.record(thread_, format::AccessRecord{{}, {}, {}, number, 1, handle, view, memory, 1});
    }
    void call(Function function, std::uint32_t file, std::int64_t offset, std::int64_t bytes, bool failed = false) {
        format::EventFields fields;
        fields.function = static_cast<std::uint16_t>(function);
        fields.file = file;
        fields.sequence = ++calls_;
        fields.start = 2000 + 100 * calls_;
        fields.end = fields.start + 10;
        fields.offset = offset;
        fields.bytes = bytes;
        fields.failed = failed;
        writer_.event(thread_, fields);
    }
    format::TraceFiles read() {
        EXPECT_TRUE(writer_.finish().ok());
        return format::TraceFiles::open({folder_.file("node.iowt")}).take();
    }

private:
    TemporaryFolder folder_;
    format::NodeWriter writer_;
    std::uint32_t thread_ = 0;
    std::uint32_t calls_ = 0;
};

using Pieces = std::vector<layout::Extent>;

/// Each request's extents; {{-1, -1}} where they are not known.
std::vector<Pieces> extents(const Requests& requests) {
    std::vector<Pieces> all;
    for (const Request& request : requests.all()) {
        auto cursor = requests.extents(request);
        Pieces pieces;
        if (!cursor) pieces.push_back({-1, -1});
        for (layout::Extent piece; cursor && cursor->next(piece);) pieces.push_back(piece);
        all.push_back(pieces);
    }
    return all;
}

const Pieces unknown{{-1, -1}};

TEST(Requests, PointersGoOnThroughAView) {
    Writer writer;
    writer.type(1, Constructor::named, 8, 8, {}, {}, "MPI_DOUBLE");
    writer.type(2, Constructor::vector, 16, 40, {1}, {2, 1, 4});  // 8 of 32 bytes, twice
    writer.view(1, 1, 2, 100);
    writer.access(2, 1, 0);
    writer.access(3, 1, 1);
    writer.call(Function::MPI_File_write, 2, -1, 10);
    writer.call(Function::MPI_File_write, 2, -1, 5);
    writer.call(Function::MPI_File_set_view, 2, 100, 0);
    writer.call(Function::MPI_File_write_all, 3, -1, 24);
    writer.call(Function::MPI_File_write, 3, -1, 8);
    writer.call(Function::MPI_File_write_at, 3, 1, 8);
    writer.call(Function::MPI_File_write, 3, -1, 8, true);  // a failed one moves nothing
    writer.call(Function::MPI_File_seek, 3, 1, 0);
    writer.call(Function::MPI_File_iread, 3, -1, 8);
    writer.call(Function::MPI_File_read, 3, -1, 8);
    const format::TraceFiles files = writer.read();
    const Requests requests(files);
    EXPECT_EQ(extents(requests),
              (std::vector<Pieces>{
                  {{0, 10}}, {{10, 5}}, {{100, 8}, {132, 16}}, {{172, 8}}, {{132, 8}}, {{132, 8}}, {{140, 8}}}));
}

TEST(Requests, SplitCollectivesCountWhereTheyEnd) {
    Writer writer;
    writer.access(2, 1, 0);
    writer.call(Function::MPI_File_write_at_all_begin, 2, 40, 0);
    writer.call(Function::MPI_File_write_at, 2, 0, 4);
    writer.call(Function::MPI_File_write_at_all_end, 2, -1, 8);
    writer.call(Function::MPI_File_read_all_begin, 2, -1, 0);
    writer.call(Function::MPI_File_read_all_end, 2, -1, 8);
    writer.call(Function::MPI_File_read_all, 2, -1, 8);
    const format::TraceFiles files = writer.read();
    EXPECT_EQ(extents(Requests(files)), (std::vector<Pieces>{{{0, 4}}, {{40, 8}}, {{0, 8}}, {{8, 8}}}));
}

TEST(Requests, HandlesHaveTheirOwnPointers) {
    Writer writer;
    writer.access(2, 1, 0);
    writer.access(3, 2, 0);
    writer.call(Function::MPI_File_write, 2, -1, 3);
    writer.call(Function::MPI_File_write, 3, -1, 5);
    writer.call(Function::MPI_File_write, 2, -1, 1);
    writer.call(Function::MPI_File_write_shared, 2, -1, 1);
    writer.call(Function::MPI_File_write, 1, -1, 1);  // nothing but its file is known
    const format::TraceFiles files = writer.read();
    EXPECT_EQ(extents(Requests(files)), (std::vector<Pieces>{{{0, 3}}, {{0, 5}}, {{3, 1}}, unknown, unknown}));
}

TEST(Requests, WhatIsNotKnownOfATypeIsNotKnownOfItsRequests) {
    Writer writer;
    writer.type(1, Constructor::named, 8, 8, {}, {}, "MPI_DOUBLE");
    writer.type(2, Constructor::other, 16, 40, {}, {});
    writer.type(3, Constructor::vector, 24, 40, {1}, {2, 1, 4});                  // of 16 bytes in truth
    writer.type(4, Constructor::vector, 16, 40, {5}, {2, 1, 4});                  // made from one that comes later
    writer.type(5, Constructor::contiguous, std::int64_t{1} << 61, 8, {1}, {2});  // no type has such a size
    for (std::uint32_t view = 1; view <= 4; ++view) writer.view(view, 1, view + 1, 0);
    for (std::uint32_t view = 1; view <= 5; ++view) {  // the last one is not there
        writer.access(1 + view, view, view);
        writer.call(Function::MPI_File_write_at, 1 + view, 0, 8);
    }
    const format::TraceFiles files = writer.read();
    EXPECT_EQ(extents(Requests(files)), (std::vector<Pieces>(5, unknown)));
}

}  // namespace
}  // namespace ioweir::analysis
