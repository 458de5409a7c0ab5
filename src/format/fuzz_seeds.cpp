// Traces to begin fuzzing with: one for each thing that a trace file can hold.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "base/fuzz_target.hpp"
#include "base/testing.hpp"
#include "format/reader_fuzz.hpp"
#include "format/writer.hpp"
#include "ioweir_generated/functions.hpp"

namespace ioweir::format {
namespace {

constexpr std::int64_t epoch_ns = seed_epoch_ns;
constexpr std::uint64_t image = 0x2a'0000'1234;

std::vector<std::uint8_t> written(std::uint32_t time_shift, const std::function<void(NodeWriter&)>& fill) {
    const TemporaryFolder folder;
    const std::string path = folder.file("seed");
    Result<NodeWriter> writer = NodeWriter::create(path, "node1", epoch_ns, time_shift);
    if (!writer) std::abort();
    fill(writer.value());
    if (!writer.value().finish()) std::abort();
    std::ifstream stream(path, std::ios::binary);
    std::vector<std::uint8_t> bytes((std::istreambuf_iterator<char>(stream)), {});
    return bytes;
}

void describe(NodeWriter& writer, std::uint32_t thread, std::uint64_t of = image, std::uint64_t parent = 0) {
    writer.record(thread, ProcessRecord{{}, {}, {}, of, parent, 42, 41, 1000}, "/opt/app");
    writer.record(thread, ClockRecord{{}, {}, {}, 1000, 1000, epoch_ns + 1000});
}

void file(NodeWriter& writer, std::uint32_t thread, std::uint32_t number, const char* path) {
    writer.record(thread, FileRecord{{}, {}, {}, number, 0}, path);
}

EventFields call(Function function, std::uint32_t sequence, std::uint64_t start, std::int64_t offset,
                 std::int64_t bytes) {
    EventFields fields;
    fields.function = static_cast<std::uint16_t>(function);
    fields.file = 1;
    fields.sequence = sequence;
    fields.start = start;
    fields.end = start + 10;
    fields.offset = offset;
    fields.bytes = bytes;
    return fields;
}

void plain(NodeWriter& writer) {
    const std::uint32_t thread = writer.begin_thread(image, 1, 500, 1000);
    describe(writer, thread);
    file(writer, thread, 1, "/data/a");
    for (std::uint32_t i = 0; i < 40; ++i) {
        EventFields fields =
            call(i % 3 == 0 ? Function::pread : Function::pwrite, i + 1, 1000 + 50 * i, 4096 * i, 4096);
        fields.failed = i % 7 == 6;
        if (fields.failed) fields.bytes = -5;
        writer.event(thread, fields);
    }
    writer.record(thread, EndRecord{{}, {}, {}, 9000});
    writer.dropped(3);
}

void ranks(NodeWriter& writer) {
    const std::uint32_t thread = writer.begin_thread(image, 1, 500, 1000);
    describe(writer, thread);
    writer.record(thread, RankRecord{{}, {}, {}, 2, 4, 1100}, "an MPI library, version 1");
    writer.record(thread, NoteRecord{{}, {}, {}, 1, 0, 7, 1200}, std::string("/data/a\0words", 13));
    writer.record(thread, VerdictRecord{{}, {}, {}, 2, 0, 3, 4096, -1, 1300}, std::string("/data/a\0why", 11));
    EngineRecord engine{};
    engine.figures.calls = 3;
    engine.figures.exchange_processor_ns = -2;
    engine.tick = 1350;
    writer.record(thread, engine, std::string("/data/a\0", 8));
    WeighedRecord weighed{};
    weighed.call = 5;
    weighed.chosen = 2;
    weighed.figures.pairs = 7;
    weighed.figures.left = 20;
    weighed.tick = 1360;
    writer.record(thread, weighed, std::string("/data/a\0", 8));
    ChosenRecord chosen{};
    chosen.step = 1;
    chosen.ranks = 4;
    chosen.figures.elapsed_ns = 120;
    chosen.tick = 1370;
    writer.record(thread, chosen, std::string("/data/a#\0", 9) + "0123456789abcdef everyone");
    file(writer, thread, 1, "/data/a");
    ModuleRecord module{{}, {}, {}, 1, 4, {}};
    for (int i = 0; i < 4; ++i) module.build_id[i] = static_cast<char>(0x11 * i);
    writer.record(thread, module, "/opt/app");
    writer.site(thread, 1, {std::uint64_t{1} << 48 | 0x1000, std::uint64_t{1} << 48 | 0x2000});
    writer.site(thread, 2, {0x3000});
    for (std::uint32_t i = 0; i < 20; ++i) {
        const std::uint32_t outer = 2 * i + 1;
        EventFields inner = call(Function::pwrite, outer + 1, 2000 + 100 * i + 5, 100 * i, 100);
        inner.parent = outer;
        inner.origin = static_cast<std::uint8_t>(Origin::mpi_library);
        inner.site = 1 + i % 2;
        EventFields around = call(Function::MPI_File_write_at, outer, 2000 + 100 * i, 100 * i, 100);
        around.end += 40;
        around.site = inner.site;
        writer.event(thread, inner);
        writer.event(thread, around);
    }
    writer.record(thread, FinalizeRecord{{}, {}, {}, 8000});
    writer.record(thread, EndRecord{{}, {}, {}, 9000});
}

void family(NodeWriter& writer) {
    const std::uint32_t parent = writer.begin_thread(image, 1, 500, 1000);
    const std::uint32_t second = writer.begin_thread(image, 2, 501, 1000);
    const std::uint32_t child = writer.begin_thread(image + 1, 1, 600, 2000);
    const std::uint32_t stranger = writer.begin_thread(image + 2, 1, 700, 2000);  // nothing describes it
    describe(writer, parent);
    describe(writer, child, image + 1, image);
    file(writer, parent, 1, "/data/shared");
    file(writer, child, 2, "/data/own");
    for (std::uint32_t i = 0; i < 12; ++i)
        for (const std::uint32_t thread : {parent, second, child, stranger}) {
            EventFields fields = call(Function::write_, i + 1, 3000 + 20 * i, -1, 8);
            fields.file = thread == child && i % 2 == 1 ? 2 : 1;
            writer.event(thread, fields);
        }
}

std::string varints(std::initializer_list<std::int64_t> values) {
    std::string text;
    std::int64_t before = 0;
    for (const std::int64_t value : values) {
        std::byte bytes[10];
        const std::byte* end = codec::put_varint(bytes, codec::zigzag(codec::difference(value, before)));
        text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
        before = value;
    }
    return text;
}

void type(NodeWriter& writer, std::uint32_t thread, TypeRecord record, std::initializer_list<std::uint32_t> types,
          std::initializer_list<std::int64_t> values) {
    record.types = static_cast<std::uint32_t>(types.size());
    record.values = record.count = static_cast<std::uint32_t>(values.size());
    std::string text(reinterpret_cast<const char*>(types.begin()), types.size() * sizeof(std::uint32_t));
    writer.record(thread, record, text + varints(values));
}

TypeRecord shape(std::uint32_t number, Constructor constructor, std::int64_t size, std::int64_t extent) {
    TypeRecord record{};
    record.type = number;
    record.constructor = static_cast<std::uint32_t>(constructor);
    record.size = size;
    record.extent = extent;
    record.digest = number;
    return record;
}

void views(NodeWriter& writer) {
    const std::uint32_t thread = writer.begin_thread(image, 1, 500, 1000);
    describe(writer, thread);
    file(writer, thread, 1, "/data/a");
    writer.record(thread, shape(1, Constructor::named, 8, 8), "MPI_DOUBLE");
    type(writer, thread, shape(2, Constructor::vector, 48, 112), {1}, {3, 2, 6});
    type(writer, thread, shape(3, Constructor::subarray, 48, 160), {1}, {2, 4, 5, 2, 3, 1, 2, 0});
    type(writer, thread, shape(4, Constructor::hindexed, 32, 128), {1}, {2, 1, 3, 0, 100});
    type(writer, thread, shape(5, Constructor::structure, 80, 300), {2, 4}, {2, 1, 1, 0, 150});
    type(writer, thread, shape(6, Constructor::resized, 80, 400), {5}, {0, 400});
    type(writer, thread, shape(7, Constructor::darray, 32, 128), {1}, {4, 1, 2, 4, 4, 1, 2, -1, 1, 2, 2, 1});
    TypeRecord parted = shape(8, Constructor::indexed_block, 24, 100);
    parted.types = 1;
    parted.values = 5;
    parted.count = 3;
    const std::uint32_t old = 1;
    writer.record(thread, parted, std::string(reinterpret_cast<const char*>(&old), sizeof old) + varints({3, 1, 0}));
    parted.first = 3;
    parted.count = 2;
    writer.record(thread, parted, varints({4, 9}));
    for (std::uint32_t view = 1; view < 7; ++view)
        writer.record(thread, ViewRecord{{}, {}, {}, view, 1, view + 1, 0, 8 * view}, view == 6 ? "external32" : "");
    for (std::uint32_t access = 2; access < 9; ++access)
        writer.record(thread, AccessRecord{{}, {}, {}, access, 1, access / 4, access - 2, access - 1, 4},
                      std::string_view("\x10\0\0\0\0\0\0\0", access == 3 ? 8 : 0));
    for (std::uint32_t i = 0; i < 56; ++i) {
        constexpr Function functions[] = {
            Function::MPI_File_write_at,      Function::MPI_File_write_all, Function::MPI_File_write_all_begin,
            Function::MPI_File_write_all_end, Function::MPI_File_seek,      Function::MPI_File_read,
            Function::MPI_File_set_view};
        const Function function = functions[i % 7];
        const bool given = function == Function::MPI_File_write_at || function == Function::MPI_File_seek;
        EventFields fields = call(function, i + 1, 2000 + 100 * i, given ? i : -1, 48);
        fields.file = 2 + i / 8;
        writer.event(thread, fields);
    }
}

}  // namespace

namespace {

/// The same trace as the first version would have it, without checksums: what changes there is read, not left out.
std::vector<std::uint8_t> without_checksums(std::vector<std::uint8_t> trace) {
    constexpr std::uint32_t version = 1;
    std::memcpy(trace.data() + offsetof(FileHeader, version), &version, sizeof version);
    for (std::size_t at = chunk_alignment; at + sizeof(ChunkHeader) <= trace.size(); at += chunk_alignment)
        if (trace[at] != 0) std::memcpy(trace.data() + at, "IOWCHNK1", 8);
    return trace;
}

}  // namespace

std::vector<std::vector<std::uint8_t>> whole_traces() {
    std::vector<std::vector<std::uint8_t>> traces{written(0, plain),
                                                  written(4, plain),
                                                  written(0, ranks),
                                                  written(4, ranks),
                                                  written(0, family),
                                                  written(0, views),
                                                  written(0, [](NodeWriter&) {})};
    for (std::size_t i = 0, count = traces.size(); i < count; ++i) traces.push_back(without_checksums(traces[i]));
    return traces;
}

}  // namespace ioweir::format

std::vector<std::string> ioweir::fuzz_seeds() {
    std::vector<std::string> seeds;
    for (const auto& trace : format::whole_traces()) {
        std::vector<std::uint8_t> input = format::pack(trace);
        seeds.emplace_back(input.begin(), input.end());
        // Sealed anew, and read as of a run whose span is known: bits of the input's first number.
        input[3] |= 0x80;
        seeds.emplace_back(input.begin(), input.end());
        input[2] |= 7 << 5;
        seeds.emplace_back(input.begin(), input.end());
    }
    return seeds;
}
