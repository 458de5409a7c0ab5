// Writes trace files from events that somebody hands over: tests, benchmarks of the reader, simulated runs.
// What does not live here: recording what a program does (tracer/ring), which maps its chunks and never fails the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "format/event_codec.hpp"
#include "ioweir_generated/records.hpp"

namespace ioweir::format {

/// The trace file of one node. Ticks are nanoseconds; `epoch_ns` is what CLOCK_REALTIME said at tick 0.
class NodeWriter {
public:
    static Result<NodeWriter> create(const std::string& path, std::string_view host, std::int64_t epoch_ns,
                                     std::uint32_t time_shift = 0);
    NodeWriter(NodeWriter&& other) noexcept;
    NodeWriter& operator=(NodeWriter&&) = delete;
    NodeWriter(const NodeWriter&) = delete;
    NodeWriter& operator=(const NodeWriter&) = delete;
    ~NodeWriter();

    /// Returns the thread's handle. `number`: unique in the image. `tick`: no event of it starts earlier.
    std::uint32_t begin_thread(std::uint64_t image, std::uint32_t number, std::uint32_t kernel_id, std::uint64_t tick);
    /// A call, in the order of their ends. Its times in units of 2^time_shift ticks.
    void event(std::uint32_t thread, const EventFields& event);
    /// A meta record of records.hpp, whose kind and size are filled in here.
    template <typename Record>
    void record(std::uint32_t thread, Record record, std::string_view text = {}) {
        record.kind = Record::record_kind;
        std::string bytes(sizeof record + text.size(), '\0');
        std::memcpy(bytes.data(), &record, sizeof record);
        bytes.replace(sizeof record, text.size(), text);
        meta(thread, std::move(bytes));
    }
    /// Names a call site. `frames`: see SiteRecord.
    void site(std::uint32_t thread, std::uint32_t site, const std::vector<std::uint64_t>& frames) {
        record(thread, SiteRecord{{}, {}, {}, site, static_cast<std::uint32_t>(frames.size())},
               std::string_view(reinterpret_cast<const char*>(frames.data()), frames.size() * sizeof(std::uint64_t)));
    }
    void dropped(std::uint64_t events) { header_.dropped_events += events; }
    /// Writes what is left. The first thing that went wrong, also earlier.
    Result<bool> finish();

private:
    struct Thread {
        std::uint64_t image;
        std::uint32_t number;
        std::uint32_t kernel_id;
        std::vector<std::byte> chunk;  ///< empty: none begun
        std::size_t used = 0;
        std::uint64_t latest = 0;  ///< end of an event, in units
        std::unique_ptr<codec::State> codec;
    };
    NodeWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
    void meta(std::uint32_t thread, std::string bytes);
    void make_room(Thread& thread, std::size_t bytes);
    void put_meta(Thread& thread, std::string bytes);
    void flush(Thread& thread);
    void write(const void* data, std::size_t size, std::uint64_t offset);

    std::string path_;
    int fd_;
    int error_ = 0;  ///< errno of the first failure
    std::int64_t epoch_ns_ = 0;
    FileHeader header_{};
    std::vector<Thread> threads_;
};

}  // namespace ioweir::format
