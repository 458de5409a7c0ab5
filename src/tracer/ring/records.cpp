// Records that are no events: what processes, files, notes, verdicts and the engine's work are called in a trace.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/raw_syscall.hpp"
#include "tracer/ring/align.hpp"
#include "tracer/ring/paths.hpp"
#include "tracer/ring/process_state.hpp"

namespace ioweir::tracer {

std::byte* begin_record(ThreadStream& stream, std::size_t size) {
    if (!has_room(stream, size + 8) || *process_tracer.alive == 0) {
        if (make_room(stream, size + 8) == nullptr) return nullptr;
    }
    while (reinterpret_cast<std::uintptr_t>(stream.cursor) % 8 != 0) *stream.cursor++ = std::byte{format::padding_tag};
    return stream.cursor;
}

void write_stream_record(ThreadStream& stream) {
    if (auto* record = begin_meta<format::StreamRecord>(stream, 0)) {
        record->stream = stream.stream;
        record->thread = static_cast<std::uint32_t>(raw::thread_id());
        record->tick = ticks(process_tracer.use_tsc);
        stream.previous = {record->tick >> time_shift, 0};
        stream.contexts = {};
        commit(stream, record);
    }
}

void describe_process(ThreadStream& stream) {
    const Scratch scratch;
    char* const executable = scratch.text();
    const ssize_t length = executable != nullptr ? raw::readlink("/proc/self/exe", executable, path_capacity) : 0;
    const std::size_t bytes = length > 0 ? shown_path(executable, static_cast<std::size_t>(length), path_capacity) : 0;
    if (auto* record = begin_meta<format::ProcessRecord>(stream, bytes)) {
        record->image = process.image;
        record->parent_image = process.parent_image;
        record->pid = static_cast<std::uint32_t>(raw::process_id());
        record->ppid = static_cast<std::uint32_t>(::getppid());
        record->start_tick = process.start_tick;
        if (bytes != 0) std::memcpy(text_of(record), executable, bytes);
        commit(stream, record);
    }
    if (auto* record = begin_meta<format::ClockRecord>(stream, 0)) {
        record->tick = ticks(process_tracer.use_tsc);
        record->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
        record->realtime_ns = realtime_ns();
        commit(stream, record);
    }
}

namespace {

std::uint32_t new_file_number() { return process.next_file.fetch_add(1, std::memory_order_relaxed) + 1; }

std::uint32_t register_path(ThreadStream& of_thread, const char* name) {
    const Scratch scratch;
    char* const path = scratch.text();
    if (path == nullptr) {
        count_drop();
        return 0;
    }
    if (name[0] == '/') {
        const std::size_t bytes = ::strnlen(name, path_capacity - 1);
        std::memcpy(path, name, bytes);
        path[bytes] = '\0';
    } else if (!absolute_path(AT_FDCWD, without_driver_prefix(name), path, path_capacity)) {
        return 0;
    }
    if (is_system_path(path)) return 0;
    std::size_t length = std::strlen(path);
    if (length >= path_capacity) length = path_capacity - 1;
    length = shown_path(path, length, path_capacity);
    // Without room the file keeps a number and no name: its calls go on being counted, as dropped or without a path.
    const std::uint32_t file = new_file_number();
    const Writing writing(process_tracer, of_thread);
    if (writing.stream() == nullptr) return file;
    ThreadStream& stream = *writing.stream();
    auto* record = begin_meta<format::FileRecord>(stream, length);
    if (record == nullptr) return file;
    record->file = file;
    std::memcpy(text_of(record), path, length);
    commit(stream, record);
    return file;
}

bool write_any_record(ThreadStream& of_thread, std::uint16_t kind, const void* fields, std::size_t bytes,
                      const void* more, std::size_t more_bytes) {
    const Writing writing(process_tracer, of_thread);
    if (writing.stream() == nullptr) return false;
    ThreadStream& stream = *writing.stream();
    auto* const record =
        begin_meta<format::FinalizeRecord>(stream, bytes + more_bytes - sizeof(format::FinalizeRecord));
    if (record == nullptr) return false;
    constexpr std::size_t prefix = offsetof(format::FinalizeRecord, tick);  // kind and size, which all records have
    auto* const at = reinterpret_cast<std::byte*>(record);
    std::memcpy(at + prefix, static_cast<const std::byte*>(fields) + prefix, bytes - prefix);
    if (more_bytes != 0) std::memcpy(at + bytes, more, more_bytes);
    const std::uint32_t size = record->size_bytes;
    __atomic_store_n(&record->kind, kind, __ATOMIC_RELEASE);
    stream.cursor += size;
    return true;
}

const char* shown_note_path(const char* path, char* out) {
    if (path == nullptr || path[0] == '\0') return path;
    std::snprintf(out, path_capacity, "%s", path);
    shown_path(out, std::strlen(out), path_capacity);
    return out;
}

/// Words of a note: what stands in quotes, or looks like a path, is shown as one.
const char* shown_text(const char* text, char* out) {
    const Scratch scratch;
    char* const name = scratch.text();
    if (text == nullptr || name == nullptr) return nullptr;
    std::size_t used = 0;
    for (const char* at = text; *at != '\0';) {
        const bool quoted = at != text && at[-1] == '"' && std::strchr(at, '"') != nullptr;
        const std::size_t length = std::strcspn(at, quoted ? "\"" : " \"");
        const std::string_view word(at, length != 0 ? length : 1);
        std::size_t bytes = word.size() < path_capacity ? word.size() : path_capacity - 1;
        std::memcpy(name, word.data(), bytes);
        if (quoted || word.find('/') != std::string_view::npos) bytes = shown_path(name, bytes, path_capacity);
        if (used + bytes >= path_capacity) break;
        std::memcpy(out + used, name, bytes);
        used += bytes;
        at += word.size();
    }
    out[used] = '\0';
    return out;
}

/// A record whose text is a path, a zero byte and words; `fill` gives it its fields. What cannot be made anonymous is not written.
template <typename Record, typename Fill>
void write_words(const char* path, const char* text, Fill fill) {
    if (!process_tracer.active) return;
    const Writing writing(process_tracer, thread_stream);
    if (writing.stream() == nullptr) return;
    ThreadStream& stream = *writing.stream();
    const Scratch scratch;
    if (process.anonymous) {
        if (scratch.text() == nullptr) return;
        path = shown_note_path(path, scratch.text());
        text = shown_text(text, scratch.text() + path_capacity);
    }
    const std::size_t path_bytes = path != nullptr ? std::strlen(path) : 0;
    const std::size_t text_bytes = text != nullptr ? std::strlen(text) : 0;
    if (auto* record = begin_meta<Record>(stream, path_bytes + 1 + text_bytes)) {
        fill(*record);
        record->tick = ticks(process_tracer.use_tsc);
        if (path_bytes != 0) std::memcpy(text_of(record), path, path_bytes);
        if (text_bytes != 0) std::memcpy(text_of(record) + path_bytes + 1, text, text_bytes);
        commit(stream, record);
    }
}

void write_note(std::uint32_t code, const char* path, std::int64_t value, const char* text) {
    write_words<format::NoteRecord>(path, text, [&](format::NoteRecord& record) {
        record.code = code;
        record.value = value;
    });
}

void write_verdict(const Verdict& verdict) {
    write_words<format::VerdictRecord>(verdict.path, verdict.text, [&](format::VerdictRecord& record) {
        record.outcome = verdict.outcome;
        record.calls = verdict.calls;
        record.bytes = verdict.bytes;
        record.offset = verdict.offset;
    });
}

void write_engine(const char* path, const format::EngineFigures<std::int64_t>& figures) {
    write_words<format::EngineRecord>(path, "", [&](format::EngineRecord& record) { record.figures = figures; });
}

void write_weighed(const char* path, format::CallKind call, format::Chosen chosen,
                   const format::WeighedFigures<std::int64_t>& figures) {
    write_words<format::WeighedRecord>(path, "", [&](format::WeighedRecord& record) {
        record.call = static_cast<std::uint32_t>(call);
        record.chosen = static_cast<std::uint32_t>(chosen);
        record.figures = figures;
    });
}

void write_chosen(const char* series, const char* words, format::ChoiceStep step, std::uint32_t ranks,
                  const format::ChosenFigures<std::int64_t>& figures) {
    write_words<format::ChosenRecord>(series, words, [&](format::ChosenRecord& record) {
        record.step = static_cast<std::uint32_t>(step);
        record.ranks = ranks;
        record.figures = figures;
    });
}

void write_rank(int rank, int ranks, const char* mpi_version) {
    if (!process_tracer.active) return;
    const Writing writing(process_tracer, thread_stream);
    if (writing.stream() == nullptr) return;
    ThreadStream& stream = *writing.stream();
    const std::size_t bytes = std::strlen(mpi_version);
    if (auto* record = begin_meta<format::RankRecord>(stream, bytes)) {
        record->rank = static_cast<std::uint32_t>(rank);
        record->ranks = static_cast<std::uint32_t>(ranks);
        record->tick = ticks(process_tracer.use_tsc);
        std::memcpy(text_of(record), mpi_version, bytes);
        commit(stream, record);
    }
    sample_clock(stream);
}

template <typename Record>
void write_moment() {
    const Writing writing(process_tracer, thread_stream);
    if (writing.stream() == nullptr) return;
    ThreadStream& stream = *writing.stream();
    if (auto* record = begin_meta<Record>(stream, 0)) {
        record->tick = ticks(process_tracer.use_tsc);
        commit(stream, record);
    }
    sample_clock(stream);
}

void write_finalize() {
    if (!process_tracer.active) return;
    align_clock(true);
    write_moment<format::FinalizeRecord>();
}

}  // namespace

void connect_records() {
    process_tracer.register_file = register_path;
    process_tracer.new_file_number = new_file_number;
    process_tracer.write_record = write_any_record;
    process_tracer.note = write_note;
    process_tracer.verdict = write_verdict;
    process_tracer.did = write_engine;
    process_tracer.weighed = write_weighed;
    process_tracer.chosen = write_chosen;
    process_tracer.rank = write_rank;
    process_tracer.finalize = write_finalize;
}

void write_end() { write_moment<format::EndRecord>(); }

std::size_t shown_path(char* path, std::size_t length, std::size_t capacity) {
    if (!process.anonymous || length == 0) return length;
    const Scratch scratch;
    char* const name = scratch.text();
    if (name == nullptr) return 0;  // what cannot be made anonymous is not shown
    const std::size_t bytes = anonymise(process.anonymise_key, {path, length}, name, path_capacity);
    const std::size_t kept = bytes < capacity ? bytes : capacity - 1;
    std::memcpy(path, name, kept);
    path[kept] = '\0';
    return kept;
}

bool write_record(const void* record, std::size_t bytes, std::uint16_t kind, const void* text, std::size_t text_bytes) {
    struct Prefix {
        std::uint16_t kind, unused;
        std::uint32_t size_bytes;
    };
    if (!process_tracer.active) return false;
    const Writing writing(process_tracer, thread_stream);
    if (writing.stream() == nullptr) return false;
    ThreadStream& stream = *writing.stream();
    const std::size_t size = (bytes + text_bytes + 15) / 16 * 16;
    std::byte* const place = begin_record(stream, size);
    if (place == nullptr) return false;
    std::memcpy(place + sizeof(Prefix), static_cast<const std::byte*>(record) + sizeof(Prefix), bytes - sizeof(Prefix));
    if (text_bytes != 0) std::memcpy(place + bytes, text, text_bytes);
    auto* prefix = reinterpret_cast<Prefix*>(place);
    prefix->size_bytes = static_cast<std::uint32_t>(size);
    __atomic_store_n(&prefix->kind, kind, __ATOMIC_RELEASE);
    stream.cursor += size;
    return true;
}

void note_high_descriptor(int fd) {
    if (!process.high_descriptor_noted.exchange(true))
        write_note(static_cast<std::uint32_t>(format::NoteCode::untraced), "", fd,
                   "descriptors above 1048575 are not traced");
}

}  // namespace ioweir::tracer
