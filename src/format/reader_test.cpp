// The reader on trace files made byte by byte here, whole and damaged.
#include "format/reader.hpp"

#include "base/testing.hpp"
#include "format/event_codec.hpp"
#include "format/seal.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <random>

namespace ioweir::format {
namespace {

/// Builds one chunk of one process with the records appended to it.
class TraceBuilder {
public:
    TraceBuilder() : bytes_(2 * chunk_alignment, '\0') {
        FileHeader header{};
        header.magic = file_magic;
        header.version = format_version;
        header.alignment = chunk_alignment;
        header.next_offset = chunk_alignment;
        header.tick_is_tsc = 1;
        std::strcpy(header.host, "node1");
        header.constants = checksum_of_constants(header);
        put(0, header);
        ChunkHeader chunk{};
        chunk.magic = chunk_magic;
        chunk.self_offset = chunk_alignment;
        chunk.image = 77;
        chunk.size_bytes = chunk_alignment;
        // Two ticks a nanosecond, from tick 1000 at 5 s after 1970.
        chunk.sample_tick = 1000 + 2'000'000;
        chunk.sample_monotonic_ns = 100 + 1'000'000;
        chunk.sample_realtime_ns = 5'000'000'000 + 1'000'000;
        put(chunk_alignment, chunk);
        cursor_ = chunk_alignment + sizeof(ChunkHeader);
        stream(1000);
        meta(ProcessRecord{{}, {}, {}, 77, 0, 42, 41, 1000}, "/bin/app");
        meta(ClockRecord{{}, {}, {}, 1000, 100, 5'000'000'000}, "");
    }
    template <typename Record>
    void meta(Record record, const std::string& text) {
        while (cursor_ % 8 != 0) bytes_[cursor_++] = static_cast<char>(padding_tag);
        const std::size_t size = (sizeof(Record) + text.size() + 15) / 16 * 16;
        record.kind = Record::record_kind;
        record.size_bytes = static_cast<std::uint32_t>(size);
        put(cursor_, record);
        bytes_.replace(cursor_ + sizeof(Record), text.size(), text);
        cursor_ += size;
    }
    void stream(std::uint64_t tick) {
        meta(StreamRecord{{}, {}, {}, 1, 500, tick}, "");
        codec_->reset(tick);
    }
    void event(Function function, std::uint32_t sequence, std::uint32_t parent, std::uint32_t file, std::uint64_t start,
               std::uint64_t duration, std::int64_t offset, std::int64_t moved, bool failed = false,
               std::uint32_t site = 0) {
        const EventFields fields{static_cast<std::uint16_t>(function),
                                 0,
                                 failed,
                                 file,
                                 sequence,
                                 parent,
                                 start,
                                 start + duration,
                                 offset,
                                 moved,
                                 site};
        auto* const at = reinterpret_cast<std::byte*>(bytes_.data()) + cursor_;
        cursor_ += static_cast<std::size_t>(codec::encode(*codec_, fields, at) - at);
    }
    template <typename T>
    void put(std::size_t at, const T& value) {
        std::memcpy(bytes_.data() + at, &value, sizeof value);
    }
    /// The same trace as the first version would have it.
    void version_1() {
        put(offsetof(FileHeader, version), std::uint32_t{1});
        put(offsetof(FileHeader, constants), std::uint64_t{0});
        for (std::size_t at = chunk_alignment; at < bytes_.size(); at += chunk_alignment) {
            std::memcpy(bytes_.data() + at, "IOWCHNK1", 8);
            put(at + offsetof(ChunkHeader, sealed_bytes), std::uint32_t{1});  // was the thread's number
        }
    }
    /// Seals the chunk at `at` up to the last record.
    void seal(std::size_t at = chunk_alignment) {
        ChunkHeader chunk;
        std::memcpy(&chunk, bytes_.data() + at, sizeof chunk);
        chunk.sealed_bytes = static_cast<std::uint32_t>(cursor_ - at);
        chunk.checksum = checksum_of_chunk(chunk, bytes_.data() + at);
        put(at, chunk);
    }
    std::string bytes_;
    std::size_t cursor_ = 0;
    std::shared_ptr<codec::State> codec_ = std::make_shared<codec::State>();
};

struct TemporaryFile {
    explicit TemporaryFile(const std::string& bytes) {
        std::ofstream(path, std::ios::binary) << bytes;
        EXPECT_EQ(std::filesystem::file_size(path), bytes.size());
    }
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
};

TraceBuilder small_trace() {
    TraceBuilder builder;
    builder.meta(FileRecord{{}, {}, {}, 1, 0}, "/data/out.dat");
    builder.meta(RankRecord{{}, {}, {}, 3, 4, 1000 + 200}, "MPI of the test");
    builder.event(Function::pwrite, 2, 1, 1, 1000 + 2000, 400, 4096, 512);
    builder.event(Function::MPI_File_write_at, 1, 0, 1, 1000 + 1000, 2000, 4096, 512);
    builder.event(Function::pread, 3, 0, 1, 1000 + 6000, 100, 0, -EIO, true);
    builder.meta(NoteRecord{{}, {}, {}, static_cast<std::uint32_t>(NoteCode::passed_through), 0, 9, 1000 + 8000},
                 std::string("/data/out.dat") + '\0' + "atomic mode");
    return builder;
}

/// The text of a SiteRecord.
std::string frames(const std::vector<std::uint64_t>& words) {
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::uint64_t)};
}

TEST(Reader, CallSitesOfAllProcessesAreNumberedTogether) {
    TraceBuilder builder;
    builder.meta(FileRecord{{}, {}, {}, 1, 0}, "/data/out.dat");
    builder.meta(ModuleRecord{{}, {}, {}, 3, 2, {'\x0a', '\xff'}}, "/bin/app");
    builder.meta(ModuleRecord{{}, {}, {}, 4, 0, {}}, "/lib/solver.so");
    builder.meta(SiteRecord{{}, {}, {}, 1, 2}, frames({3ULL << 48 | 0x1234, 0xffffULL << 48 | 0x99}));
    builder.meta(SiteRecord{{}, {}, {}, 2, 1}, frames({4ULL << 48 | 0x1234}));
    builder.meta(SiteRecord{{}, {}, {}, 7, 2}, frames({3ULL << 48 | 0x1234, 0xffffULL << 48 | 0x99}));
    std::uint32_t sequence = 0;
    for (const std::uint32_t site : {0U, 1U, 2U, 1U, 7U, 7U, 5U}) {
        ++sequence;
        builder.event(Function::pwrite, sequence, 0, 1, 1000 + 100 * sequence, 10, 512 * sequence, 512, false, site);
    }
    const TemporaryFile file(builder.bytes_);
    auto result = read_trace({file.path});
    ASSERT_TRUE(result.ok()) << result.error().message();
    const Trace& trace = result.value();
    EXPECT_TRUE(trace.damage.empty());
    ASSERT_EQ(trace.modules.size(), 2U);
    EXPECT_EQ(trace.modules[0], (Module{"/bin/app", "0aff"}));
    EXPECT_EQ(trace.modules[1], (Module{"/lib/solver.so", ""}));
    ASSERT_EQ(trace.events.site.size(), 7U);
    const auto frames_at = [&](std::size_t event) { return trace.sites.at(trace.events.site[event]); };
    const std::vector<SiteFrame> first{{0, 0x1234}, {-1, 0x99}};
    EXPECT_EQ(trace.events.site[0], 0U);
    EXPECT_EQ(frames_at(1), first);
    EXPECT_EQ(frames_at(2), (std::vector<SiteFrame>{{1, 0x1234}}));
    EXPECT_EQ(trace.events.site[3], trace.events.site[1]);
    EXPECT_EQ(trace.events.site[4], trace.events.site[1]) << "the same calls are one site";
    EXPECT_EQ(trace.events.site[5], trace.events.site[1]);
    EXPECT_EQ(trace.events.site[6], 0U) << "a site that nothing names is unknown";
    EXPECT_EQ(trace.sites.size(), 3U);
}

TEST(Reader, ReadsEveryColumn) {
    const TemporaryFile file(small_trace().bytes_);
    auto result = read_trace({file.path});
    ASSERT_TRUE(result.ok()) << result.error().message();
    const Trace& trace = result.value();
    EXPECT_TRUE(trace.damage.empty());
    EXPECT_EQ(trace.epoch_ns, 5'000'000'000);
    ASSERT_EQ(trace.processes.size(), 1U);
    EXPECT_EQ(trace.processes[0].pid, 42U);
    EXPECT_EQ(trace.processes[0].executable, "/bin/app");
    EXPECT_EQ(trace.processes[0].rank, 3);
    EXPECT_EQ(trace.processes[0].ranks, 4);
    EXPECT_EQ(trace.processes[0].mpi_init_ns, 100);
    EXPECT_EQ(trace.processes[0].mpi_finalize_ns, -1);
    EXPECT_EQ(trace.hosts[trace.processes[0].host], "node1");
    const Events& e = trace.events;
    ASSERT_EQ(e.function.size(), 3U);
    EXPECT_EQ(e.function[0], static_cast<std::uint16_t>(Function::pwrite));
    EXPECT_EQ(e.sequence, (std::vector<std::uint32_t>{2, 1, 3}));
    EXPECT_EQ(e.parent, (std::vector<std::uint32_t>{1, 0, 0}));
    EXPECT_EQ(e.start_ns, (std::vector<std::int64_t>{1000, 500, 3000}));
    EXPECT_EQ(e.duration_ns, (std::vector<std::int64_t>{200, 1000, 50}));
    EXPECT_EQ(e.bytes, (std::vector<std::int64_t>{512, 512, 0}));
    EXPECT_EQ(e.error, (std::vector<std::int32_t>{0, 0, EIO}));
    EXPECT_EQ(trace.paths[e.path[0]], "/data/out.dat");
    ASSERT_EQ(trace.notes.size(), 1U);
    EXPECT_EQ(trace.notes[0].path, "/data/out.dat");
    EXPECT_EQ(trace.notes[0].text, "atomic mode");
    EXPECT_EQ(trace.notes[0].value, 9);
    EXPECT_EQ(trace.notes[0].time_ns, 4000);
}

TEST(Reader, ForkedChildFindsPathsOfItsAncestors) {
    TraceBuilder builder;
    builder.meta(FileRecord{{}, {}, {}, 5, 0}, "/data/inherited");
    builder.bytes_.resize(3 * chunk_alignment, '\0');
    ChunkHeader chunk{};
    chunk.magic = chunk_magic;
    chunk.self_offset = 2 * chunk_alignment;
    chunk.image = 78;
    chunk.size_bytes = chunk_alignment;
    builder.put(2 * chunk_alignment, chunk);
    builder.cursor_ = 2 * chunk_alignment + sizeof(ChunkHeader);
    builder.stream(5000);
    builder.meta(ProcessRecord{{}, {}, {}, 78, 77, 43, 42, 5000}, "/bin/app");
    builder.event(Function::write_, 1, 0, 5, 6000, 10, -1, 3);
    const TemporaryFile file(builder.bytes_);
    auto result = read_trace({file.path});
    ASSERT_TRUE(result.ok());
    ASSERT_EQ(result.value().events.path.size(), 1U);
    EXPECT_EQ(result.value().paths[result.value().events.path[0]], "/data/inherited");
    EXPECT_EQ(result.value().events.process[0], 1U);
}

TEST(Reader, AThreadsChunksComeInOrderOfTimeWhereverTheyLie) {
    TraceBuilder builder;
    builder.event(Function::pwrite, 1, 0, 0, 2000, 10, 0, 1);
    // Another thread takes the rest of the chunk over; then the first thread's second chunk, before its third in time but
    // behind it in the file.
    const auto begin = [&](std::uint32_t stream, std::uint64_t tick) {
        builder.meta(StreamRecord{{}, {}, {}, stream, 500 + stream, tick}, "");
        builder.codec_->reset(tick);
    };
    begin(2, 2500);
    builder.event(Function::pread, 1, 0, 0, 3000, 10, 0, 1);
    builder.bytes_.resize(4 * chunk_alignment, '\0');
    for (std::uint64_t chunk_number : {2, 3}) {
        ChunkHeader chunk{};
        chunk.magic = chunk_magic;
        chunk.self_offset = chunk_number * chunk_alignment;
        chunk.image = 77;
        chunk.size_bytes = chunk_alignment;
        builder.put(chunk.self_offset, chunk);
        builder.cursor_ = chunk.self_offset + sizeof(ChunkHeader);
        const std::uint64_t tick = chunk_number == 2 ? 90000 : 40000;
        begin(1, tick);
        builder.event(Function::pwrite, chunk_number == 2 ? 3 : 2, 0, 0, tick + 100, 10, 0, 1);
    }
    const TemporaryFile file(builder.bytes_);
    auto opened = TraceFiles::open({file.path});
    ASSERT_TRUE(opened.ok());
    const TraceFiles& files = opened.value();
    EXPECT_TRUE(files.about().damage.empty());
    EXPECT_EQ(files.event_count(), 4U);
    ASSERT_EQ(files.threads().size(), 2U);
    for (std::uint32_t thread = 0; thread < 2; ++thread) {
        EXPECT_EQ(files.threads()[thread].kernel_id, thread == 0 ? 500U : 502U);
        EXPECT_EQ(files.threads()[thread].events, thread == 0 ? 3U : 1U);
        ThreadCursor cursor = files.cursor(thread);
        Event event;
        std::uint32_t sequence = 0;
        std::int64_t last_ns = 0;
        while (cursor.next(event)) {
            EXPECT_EQ(event.sequence, ++sequence);
            EXPECT_GT(event.start_ns, last_ns);
            last_ns = event.start_ns;
        }
        EXPECT_EQ(sequence, thread == 0 ? 3U : 1U);
        EXPECT_FALSE(cursor.next(event));
    }
}

TEST(Reader, DamagedRecordEndsItsChunkAndIsReported) {
    TraceBuilder builder = small_trace();
    builder.event(static_cast<Function>(0x7fff), 9, 0, 1, 9000, 1, 0, 1);  // no such function
    builder.event(Function::pwrite, 4, 0, 1, 9000, 1, 0, 1);
    const TemporaryFile file(builder.bytes_);
    auto result = read_trace({file.path});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result.value().events.function.size(), 3U);
    ASSERT_EQ(result.value().damage.size(), 1U);
    EXPECT_NE(result.value().damage[0].find("is no record"), std::string::npos);
}

TEST(Reader, WhatIsNoFileIsRefusedAndNotWaitedFor) {
    const TemporaryFile trace(small_trace().bytes_);
    const TemporaryFolder folder;
    const std::string path = folder.file("node-x.iowt");
    const auto number = [&] {
        const auto result = read_trace({path});
        std::filesystem::remove(path);
        return result.ok() ? 0 : result.error().number;
    };
    std::filesystem::create_symlink(trace.path, path);
    EXPECT_EQ(number(), ELOOP);
    std::filesystem::create_symlink("/dev/zero", path);
    EXPECT_EQ(number(), ELOOP);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(number(), ENXIO);
    std::filesystem::create_directory(path);
    EXPECT_EQ(number(), EISDIR);
}

/// A terabyte, of which nobody has written more than the beginning and a chunk in the middle.
TEST(Reader, AFileMuchLongerThanWhatIsInItIsReadAtOnce) {
    TraceBuilder builder = small_trace();
    const TemporaryFile file(builder.bytes_);
    std::filesystem::resize_file(file.path, std::uintmax_t{1} << 40);
    ChunkHeader chunk{};
    chunk.magic = chunk_magic;
    chunk.self_offset = std::uint64_t{1} << 39;
    chunk.size_bytes = chunk_alignment;
    chunk.image = 99;  // is described nowhere
    {
        std::fstream there(file.path, std::ios::in | std::ios::out | std::ios::binary);
        there.seekp(std::streamoff{1} << 39);
        there.write(reinterpret_cast<const char*>(&chunk), sizeof chunk);
    }
    struct rusage before{}, after{};
    ASSERT_EQ(::getrusage(RUSAGE_SELF, &before), 0);
    auto result = read_trace({file.path});
    ASSERT_EQ(::getrusage(RUSAGE_SELF, &after), 0);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result.value().events.function.size(), 3U);
    EXPECT_LT(after.ru_minflt - before.ru_minflt, 10'000);  // a page for each chunk that might be would be 16 million
}

TEST(Reader, FileCutOffAnywhereGivesAPrefix) {
    const TraceBuilder builder = small_trace();
    auto whole = read_trace({TemporaryFile(builder.bytes_).path});
    for (std::size_t size = 0; size < builder.cursor_ + 100; size += size < chunk_alignment ? 4096 + 13 : 7) {
        const TemporaryFile file(builder.bytes_.substr(0, size));
        auto result = read_trace({file.path});
        if (!result.ok()) {
            EXPECT_LT(size, sizeof(FileHeader));
            continue;
        }
        EXPECT_LE(result.value().events.function.size(), 3U);
        if (size > chunk_alignment + sizeof(ChunkHeader)) {
            EXPECT_FALSE(result.value().damage.empty()) << size;
        }
    }
}

TEST(Reader, RandomBytesNeverCrash) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 400; ++round) {
        TraceBuilder builder = small_trace();
        const std::size_t first = sizeof(FileHeader);
        if (round % 4 < 2) builder.version_1();
        for (int i = 0; i < 40; ++i) {
            const std::size_t at = round % 2 == 0 ? first + random() % (builder.bytes_.size() - first)
                                                  : chunk_alignment + random() % (builder.cursor_ - chunk_alignment);
            builder.bytes_[at] = static_cast<char>(random());
        }
        const TemporaryFile file(builder.bytes_);
        auto result = read_trace({file.path});
        if (result.ok()) {
            EXPECT_LE(result.value().events.function.size(), builder.bytes_.size());
        }
    }
}

TEST(Reader, TracesOfTheFirstVersionAreRead) {
    TraceBuilder builder = small_trace();
    const auto now = read_trace({TemporaryFile(builder.bytes_).path});
    builder.version_1();
    const auto then = read_trace({TemporaryFile(builder.bytes_).path});
    ASSERT_TRUE(now.ok() && then.ok());
    EXPECT_EQ(then.value().version, 1U);
    EXPECT_TRUE(then.value().damage.empty());
    EXPECT_EQ(then.value().left_out_chunks, 0U);
    EXPECT_EQ(then.value().events.start_ns, now.value().events.start_ns);
    EXPECT_EQ(then.value().events.start_ns.size(), 3U);
}

TEST(Reader, AnyDamageOfASealedChunkLeavesItOut) {
    TraceBuilder whole = small_trace();
    const std::size_t sealed_end = whole.cursor_;
    whole.seal();
    whole.event(Function::pwrite, 4, 0, 1, 1000 + 9000, 100, 0, 1);  // a call at exit, behind what is sealed
    const auto read = read_trace({TemporaryFile(whole.bytes_).path});
    ASSERT_TRUE(read.ok());
    EXPECT_TRUE(read.value().damage.empty()) << read.value().damage[0];
    EXPECT_EQ(read.value().events.function.size(), 4U);
    for (std::size_t at = chunk_alignment; at < sealed_end; ++at) {
        // Without these it is no chunk, or one without a checksum.
        const std::size_t field = at - chunk_alignment;
        if (field < offsetof(ChunkHeader, image)) continue;
        if (field >= offsetof(ChunkHeader, size_bytes) && field < offsetof(ChunkHeader, sealed_bytes)) continue;
        TraceBuilder broken = whole;
        broken.bytes_[at] = static_cast<char>(broken.bytes_[at] ^ 0x10);
        const auto result = read_trace({TemporaryFile(broken.bytes_).path});
        ASSERT_TRUE(result.ok()) << at;
        EXPECT_EQ(result.value().left_out_chunks, 1U) << at;
        EXPECT_EQ(result.value().events.function.size(), 0U) << at;
        ASSERT_EQ(result.value().damage.size(), 1U) << at;
        EXPECT_NE(result.value().damage[0].find("byte 65536 begins a chunk whose checksum does not match"),
                  std::string::npos);
    }
}

TEST(Reader, DamageOfOneChunkLeavesTheOthers) {
    TraceBuilder builder = small_trace();
    builder.seal();
    builder.bytes_.resize(3 * chunk_alignment, '\0');
    ChunkHeader chunk;
    std::memcpy(&chunk, builder.bytes_.data() + chunk_alignment, sizeof chunk);
    chunk.self_offset = 2 * chunk_alignment;
    builder.put(chunk.self_offset, chunk);
    builder.cursor_ = chunk.self_offset + sizeof chunk;
    builder.stream(9000);
    builder.event(Function::pwrite, 4, 0, 1, 9000, 1, 0, 1);
    builder.seal(chunk.self_offset);
    builder.bytes_[builder.cursor_ - 1] = '\x7f';
    const auto result = read_trace({TemporaryFile(builder.bytes_).path});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result.value().left_out_chunks, 1U);
    EXPECT_EQ(result.value().events.function.size(), 3U);
}

TEST(Reader, ADamagedHeaderIsAnError) {
    const TraceBuilder builder = small_trace();
    for (const std::size_t at : {offsetof(FileHeader, time_shift), offsetof(FileHeader, host) + 2,
                                 offsetof(FileHeader, tick_is_tsc), offsetof(FileHeader, constants)}) {
        TraceBuilder broken = builder;
        broken.bytes_[at] = static_cast<char>(broken.bytes_[at] ^ 1);
        const auto result = read_trace({TemporaryFile(broken.bytes_).path});
        ASSERT_FALSE(result.ok());
        EXPECT_NE(result.error().message().find("damaged header"), std::string::npos);
    }
}

TEST(Reader, WhatCannotBeIsLeftOutAndCounted) {
    constexpr std::uint64_t century = 100ULL * 366 * 86'400 * 2'000'000'000;
    const auto only = [](void (*add)(TraceBuilder&)) {
        for (const bool first_version : {false, true}) {
            TraceBuilder builder = small_trace();
            add(builder);
            if (first_version) builder.version_1();
            const auto result = read_trace({TemporaryFile(builder.bytes_).path});
            ASSERT_TRUE(result.ok());
            const Trace& trace = result.value();
            EXPECT_EQ(trace.events.function.size(), 3U);
            EXPECT_EQ(trace.left_out_records, 1U);
            ASSERT_EQ(trace.damage.size(), 1U);
            EXPECT_NE(trace.damage[0].find("1 records are left out"), std::string::npos) << trace.damage[0];
            EXPECT_EQ(trace.processes[0].ranks, 4);
            EXPECT_EQ(trace.processes[0].end_ns, -1);
        }
    };
    only([](TraceBuilder& to) { to.event(Function::pwrite, 4, 0, 1, 9000, century, 0, 1); });       // too long
    only([](TraceBuilder& to) { to.event(Function::pwrite, 4, 0, 1, 9000 + century, 10, 0, 1); });  // too late
    only([](TraceBuilder& to) { to.event(Function::pwrite, 4, 0, 1, 999, 10, 0, 1); });             // before the run
    only([](TraceBuilder& to) { to.event(Function::pwrite, 4, 0, 1, 9000, 10, 0, -512); });         // a negative size
    only([](TraceBuilder& to) { to.event(Function::pwrite, 4, 0, 1, 9000, 10, 0, std::int64_t{1} << 51); });
    only([](TraceBuilder& to) { to.event(Function::pread, 4, 0, 1, 9000, 10, -4096, 1); });
    only([](TraceBuilder& to) {
        to.event(Function::pread, 4, 0, 1, 9000, 10, std::numeric_limits<std::int64_t>::max(), 1);  // ends beyond 2^63
    });
    only([](TraceBuilder& to) { to.meta(RankRecord{{}, {}, {}, 9, 4, 1000 + 200}, "MPI of the test"); });
    only([](TraceBuilder& to) { to.meta(EndRecord{{}, {}, {}, 9000 + century}, ""); });
    only([](TraceBuilder& to) {
        to.meta(VerdictRecord{{}, {}, {}, 0, 0, -7, 1, 0, 9000}, std::string("/data/out.dat\0", 14));
    });
}

constexpr std::uint64_t second = 2'000'000'000;  // ticks
constexpr RunSpan one_second{5'000'000'000, 6'000'000'000};

std::uint64_t events_of(const TraceBuilder& builder, const RunSpan& span = one_second) {
    const auto opened = TraceFiles::open({TemporaryFile(builder.bytes_).path}, span);
    return opened.ok() ? opened.value().event_count() : 99;
}

/// Sets the node's own clock a day ahead of the run's.
void set_ahead(TraceBuilder& builder) {
    constexpr std::uint64_t day_ns = 86'400'000'000'000;
    const std::size_t chunk = chunk_alignment + offsetof(ChunkHeader, sample_realtime_ns);
    builder.put(chunk, std::uint64_t{5'000'000'000 + 1'000'000 + day_ns});
    const std::size_t record = builder.bytes_.find("/bin/app") + 8;  // the ClockRecord follows
    ClockRecord clock;
    std::memcpy(&clock, builder.bytes_.data() + record, sizeof clock);
    ASSERT_EQ(clock.kind, ClockRecord::record_kind);
    clock.realtime_ns += day_ns;
    builder.put(record, clock);
}

TEST(Reader, TheRunsOwnBeginAndEndCountOnItsClock) {
    TraceBuilder builder = small_trace();
    builder.event(Function::pwrite, 4, 0, 1, 1000 + second * 60, 10, 0, 1);  // a minute after the begin
    EXPECT_EQ(events_of(builder), 3U) << "a clock that nobody has compared with the run's, and that shows its time";
    builder.meta(AlignRecord{{}, {}, {}, static_cast<std::uint32_t>(AlignKind::same_machine), 0, 1000, 0, 0}, "");
    EXPECT_EQ(events_of(builder), 3U);
    EXPECT_EQ(events_of(builder, {}), 4U) << "nobody knows when the run was";
}

TEST(Reader, OnAClockThatIsElsewhereTheRunsLengthCounts) {
    TraceBuilder builder = small_trace();
    set_ahead(builder);
    EXPECT_EQ(events_of(builder), 3U);
    TraceBuilder later = builder;
    later.event(Function::pwrite, 4, 0, 1, 1000 + second * 3, 10, 0, 1);
    EXPECT_EQ(events_of(later), 4U);
    builder.event(Function::pwrite, 4, 0, 1, 1000 + second * 60, 10, 0, 1);
    EXPECT_EQ(events_of(builder), 3U);
}

TEST(Reader, NoCallTakesLongerThanTheRun) {
    TraceBuilder builder = small_trace();
    builder.event(Function::pwrite, 4, 0, 1, 9000, second, 0, 1);
    EXPECT_EQ(events_of(builder), 4U);
    builder.event(Function::pwrite, 5, 0, 1, 9000, second + second / 10, 0, 1);
    EXPECT_EQ(events_of(builder), 4U);
    EXPECT_EQ(events_of(builder, {}), 5U);
}

TEST(Reader, ADamagedClockSampleAmongOthersIsLeftOut) {
    TraceBuilder builder = small_trace();
    for (std::uint64_t at = 1; at < 6; ++at)
        builder.meta(
            ClockRecord{{}, {}, {}, 1000 + at * second / 10, 100 + at * 100'000'000, 5'000'000'000 + at * 100'000'000},
            "");
    const auto durations = [](const TraceBuilder& of) {
        const auto trace = read_trace({TemporaryFile(of.bytes_).path});
        return std::pair{trace.value().events.duration_ns, trace.value().left_out_records};
    };
    const auto whole = durations(builder);
    EXPECT_EQ(whole.second, 0U);
    builder.meta(ClockRecord{{}, {}, {}, 1000 + second * 4000, 100 + 600'000'000, 5'600'000'000}, "");
    const auto broken = durations(builder);
    EXPECT_EQ(broken.first, whole.first);
    EXPECT_EQ(broken.second, 1U);
}

TEST(Reader, ErrorsNameTheFile) {
    auto missing = read_trace({"/nowhere/at-all.iowt"});
    ASSERT_FALSE(missing.ok());
    EXPECT_NE(missing.error().message().find("/nowhere/at-all.iowt"), std::string::npos);
    const TemporaryFile text("this is no trace, but long enough to hold a header: " + std::string(200, 'x'));
    auto wrong = read_trace({text.path});
    ASSERT_FALSE(wrong.ok());
    EXPECT_NE(wrong.error().message().find("no ioweir mark"), std::string::npos);
    TraceBuilder newer = small_trace();
    newer.put(offsetof(FileHeader, version), format_version + 1);
    const TemporaryFile file(newer.bytes_);
    auto result = read_trace({file.path});
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.error().message().find("newer"), std::string::npos);
}

}  // namespace
}  // namespace ioweir::format
