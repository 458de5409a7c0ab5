// Reads trace files: thread by thread without keeping anything, or into columns. Reads what is there: a truncated or
// damaged file gives everything up to the damage and says where it is.
// What does not live here: what the events mean together (src/analysis), writing (writer.hpp, tracer/ring).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "format/event_codec.hpp"
#include "format/plausible.hpp"
#include "ioweir_generated/functions.hpp"
#include "ioweir_generated/records.hpp"

namespace ioweir::format {

/// One process image: from exec (or fork) to its end.
struct Process {
    std::uint32_t pid = 0;
    std::uint32_t ppid = 0;
    std::uint64_t image = 0;
    std::uint64_t parent_image = 0;  ///< forked from; 0: began by exec
    std::uint32_t host = 0;          ///< index into Trace::hosts
    std::string executable;
    std::int32_t rank = -1;
    std::int32_t ranks = 0;
    std::string mpi_library;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = -1;           ///< -1: no normal end was seen
    std::int64_t mpi_init_ns = -1;      ///< -1: MPI was not initialised
    std::int64_t mpi_finalize_ns = -1;  ///< -1: MPI was not finalised
};

struct Note {
    std::uint32_t process = 0;  ///< index into Trace::processes
    std::uint32_t code = 0;     ///< NoteCode, or a newer one
    std::int64_t value = 0;
    std::int64_t time_ns = 0;
    std::string path;
    std::string text;
};

/// What verification found of writes of a process.
struct Verdict {
    std::uint32_t process = 0;  ///< index into Trace::processes
    std::uint32_t outcome = 0;  ///< VerifyOutcome, or a newer one
    std::int64_t calls = 0;
    std::int64_t bytes = 0;
    std::int64_t offset = -1;
    std::string path;
    std::string text;
};

/// What the engine did with a file through one handle of a process.
struct EngineWork {
    std::uint32_t process = 0;  ///< index into Trace::processes
    std::string path;
    EngineFigures<std::int64_t> figures;
};

/// Who made calls of one kind on a file through one handle of a process, and why.
struct WeighedCalls {
    std::uint32_t process = 0;  ///< index into Trace::processes
    std::string path;
    std::uint32_t call = 0;    ///< CallKind, or a newer one
    std::uint32_t chosen = 0;  ///< Chosen, or a newer one
    WeighedFigures<std::int64_t> figures;
};

/// By whom one file of a loop was moved, and how long that took.
struct ChosenFile {
    std::uint32_t process = 0;  ///< index into Trace::processes
    std::string series;
    std::string words;
    std::uint32_t step = 0;  ///< ChoiceStep, or a newer one
    std::uint32_t ranks = 0;
    ChosenFigures<std::int64_t> figures;
};

/// How a node's clock relates to the run's.
struct ClockAlignment {
    bool aligned = false;              ///< false: times are by the node's own CLOCK_REALTIME
    std::int64_t first_offset_ns = 0;  ///< the run's clock minus the node's, at the first alignment
    std::int64_t last_offset_ns = 0;   ///< and at the last
    std::int64_t uncertainty_ns = 0;   ///< half the longest round trip
};

/// An executable or library in which call sites lie.
struct Module {
    std::string path;
    std::string build_id;  ///< hexadecimal; "" when it has none
    friend bool operator==(const Module&, const Module&) = default;
};

/// One of the calls that led to an event.
struct SiteFrame {
    std::int32_t module = -1;   ///< index into Trace::modules; -1: unknown
    std::uint64_t address = 0;  ///< within the call instruction, as the module's file states addresses
    friend bool operator==(const SiteFrame&, const SiteFrame&) = default;
};

/// An MPI datatype that a call or a view used.
struct Datatype {
    std::uint32_t constructor = static_cast<std::uint32_t>(Constructor::other);  ///< `other`: too little is known of it
    std::int64_t size = -1;                                                      ///< bytes of data; -1: unknown
    std::int64_t lower = 0;
    std::int64_t extent = 0;
    std::vector<std::int64_t> values;  ///< see TypeRecord
    std::vector<std::uint32_t> types;  ///< that it was made from: indexes into Trace::datatypes, before its own
    std::string name;                  ///< of a named one
    friend bool operator==(const Datatype&, const Datatype&) = default;
};

/// A file view.
struct View {
    std::int64_t displacement = 0;
    std::uint32_t etype = 0;     ///< index into Trace::datatypes
    std::uint32_t filetype = 0;  ///< the same
    std::string representation;  ///< "": native
    bool set = false;            ///< false: the file's bytes, as after MPI_File_open
    friend bool operator==(const View&, const View&) = default;
};

/// How MPI-IO calls of one process use a file.
struct Access {
    std::uint32_t process = 0;  ///< index into Trace::processes
    std::uint32_t path = 0;     ///< index into Trace::paths
    std::uint32_t handle = 0;   ///< number of the open file in its process
    std::uint32_t view = 0;     ///< index into Trace::views
    bool has_view = false;      ///< false: the view is not known
    std::uint32_t memory = 0;   ///< index into Trace::datatypes; 0: not known
    std::uint32_t ranks = 0;    ///< of the communicator that opened the file
    std::int64_t pointer = 0;   ///< where the individual file pointer was then, bytes; -1: unknown
};

/// One call as it was recorded. Times are nanoseconds after `epoch_ns`.
struct Event {
    std::uint32_t thread = 0;
    std::uint32_t sequence = 0;
    std::uint32_t parent = 0;  ///< sequence of the enclosing call; 0: none
    std::uint32_t path = 0;    ///< index into Trace::paths
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::uint64_t missing = 0;  ///< of a short call: bytes that it was asked for and did not move
    std::int32_t error = 0;     ///< errno or MPI error class of a failed call
    std::uint32_t site = 0;     ///< index into Trace::sites
    std::uint32_t access = 0;   ///< index into Trace::accesses; 0: none
    std::uint16_t function = 0;
    std::uint8_t origin = 0;
    bool failed = false;
};

/// Of Events::flags.
inline constexpr std::uint8_t flag_failed = 1;
inline constexpr std::uint8_t flag_short = 2;

/// One entry an event in every column, thread by thread, in the order of their ends. Times are nanoseconds after `epoch_ns`.
struct Events {
    std::vector<std::uint32_t> process;  ///< index into Trace::processes
    std::vector<std::uint32_t> thread;   ///< index into TraceFiles::threads()
    std::vector<std::uint32_t> sequence;
    std::vector<std::uint32_t> parent;
    std::vector<std::uint16_t> function;
    std::vector<std::uint8_t> origin;
    std::vector<std::uint8_t> flags;
    std::vector<std::uint32_t> path;  ///< index into Trace::paths
    std::vector<std::int64_t> start_ns;
    std::vector<std::int64_t> duration_ns;
    std::vector<std::int64_t> offset;
    std::vector<std::int64_t> bytes;
    std::vector<std::int32_t> error;
    std::vector<std::uint32_t> site;
    std::vector<std::uint32_t> access;

    void reserve(std::size_t count);
    void push_back(const Event& event, std::uint32_t of_process);
};

struct Trace {
    std::uint32_t version = 0;
    std::int64_t epoch_ns = 0;  ///< time 0 of the trace, nanoseconds since 1970 (CLOCK_REALTIME)
    Events events;
    std::vector<Process> processes;
    std::vector<std::string> hosts;
    std::vector<ClockAlignment> clocks;  ///< of each host
    std::vector<std::string> paths;      ///< paths[0] is "": unknown
    std::vector<Note> notes;
    std::vector<Verdict> verdicts;
    std::vector<EngineWork> engine_work;
    std::vector<WeighedCalls> weighed_calls;
    std::vector<ChosenFile> chosen_files;
    std::vector<Module> modules;
    std::vector<std::vector<SiteFrame>> sites;  ///< innermost call first; sites[0] is empty: not recorded
    std::vector<Datatype> datatypes;            ///< datatypes[0] is unknown
    std::vector<View> views;                    ///< views[0]: the file's bytes
    std::vector<Access> accesses;               ///< accesses[0]: none
    std::uint64_t dropped = 0;                  ///< events that were lost for want of space
    std::uint64_t disabled_processes = 0;       ///< processes that ran out of space
    std::vector<std::string> damage;            ///< what could not be read, and where
    std::uint64_t left_out_chunks = 0;          ///< whose checksum does not match
    std::uint64_t left_out_records = 0;         ///< that say what cannot be: see plausible.hpp
};

/// One thread of one process image.
struct Thread {
    std::uint32_t process = 0;    ///< index into Trace::processes
    std::uint32_t kernel_id = 0;  ///< gettid()
    std::uint64_t events = 0;
};

class NodeFile;

/// Reads one thread's events in the order of their ends, which is the order they were recorded in. The TraceFiles that it
/// came from must outlive it.
class ThreadCursor {
public:
    ThreadCursor(const NodeFile& file, std::uint32_t thread, std::size_t stream);
    ThreadCursor(ThreadCursor&&) noexcept;
    ThreadCursor& operator=(ThreadCursor&&) noexcept;
    ThreadCursor(const ThreadCursor&) = delete;
    ThreadCursor& operator=(const ThreadCursor&) = delete;
    ~ThreadCursor();
    /// False when there is none left.
    bool next(Event& event);

private:
    bool next_segment();

    const NodeFile* file_;
    std::uint32_t thread_;
    std::size_t stream_;
    std::size_t segment_ = 0;
    const std::byte* at_ = nullptr;
    const std::byte* end_ = nullptr;
    bool checks_ = false;          ///< not all events of the segment are plausible
    std::uint32_t last_file_ = 0;  ///< file ids repeat: the last one's path
    std::uint32_t last_path_ = 0;
    std::uint32_t last_access_ = 0;
    std::uint32_t last_site_ = 0;  ///< so do call sites
    std::uint32_t last_site_number_ = 0;
    std::unique_ptr<codec::State> codec_;  ///< 4 KB; only while there are events left
};

/// A trace file whose bytes are in memory.
struct TraceBytes {
    std::string name;  ///< for messages
    std::span<const std::byte> bytes;
};

/// The trace files of a run, mapped and indexed: everything but the events is known, the events are read through cursors.
class TraceFiles {
public:
    /// `files`: the trace files of the nodes; `shown`: what messages call them, by their own names where it is shorter.
    /// An Error only when a file cannot be opened or is no trace file at all.
    static Result<TraceFiles> open(const std::vector<std::string>& files, const RunSpan& span = {},
                                   const std::vector<std::string>& shown = {});
    /// The same of bytes, which must outlive it.
    static Result<TraceFiles> read(std::span<const TraceBytes> files, const RunSpan& span = {});
    TraceFiles(TraceFiles&&) noexcept;
    TraceFiles& operator=(TraceFiles&&) noexcept;
    TraceFiles(const TraceFiles&) = delete;
    TraceFiles& operator=(const TraceFiles&) = delete;
    ~TraceFiles();

    /// Everything but the events: `about().events` is empty.
    [[nodiscard]] const Trace& about() const { return *about_; }
    [[nodiscard]] const std::vector<Thread>& threads() const { return threads_; }
    [[nodiscard]] std::uint64_t event_count() const { return event_count_; }
    [[nodiscard]] ThreadCursor cursor(std::uint32_t thread) const;
    /// All events, thread by thread. Takes 64 bytes an event.
    [[nodiscard]] Events read_events() const;

private:
    struct Place {
        std::uint32_t file;
        std::uint32_t stream;
    };
    struct Source;
    static Result<TraceFiles> index(std::vector<Source> sources, const RunSpan& span);
    TraceFiles();

    std::unique_ptr<Trace> about_;  ///< node files refer to it
    std::vector<std::unique_ptr<NodeFile>> files_;
    std::vector<Thread> threads_;
    std::vector<Place> places_;  ///< of each thread
    std::uint64_t event_count_ = 0;
};

/// The whole trace at once, events and all.
Result<Trace> read_trace(const std::vector<std::string>& files);

}  // namespace ioweir::format
