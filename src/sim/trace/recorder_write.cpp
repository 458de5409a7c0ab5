// The files of a recorded run: an image a rank, with a second thread for what is written behind the program.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "format/event_codec.hpp"
#include "format/writer.hpp"
#include "ioweir_generated/functions.hpp"
#include "sim/trace/recorder.hpp"

namespace ioweir::sim {

using format::Constructor;
using format::Function;
using format::NodeWriter;

namespace {

constexpr std::int64_t epoch_ns = 946'684'800'000'000'000;  // 2000-01-01 00:00 UTC: simulated time has no date
constexpr const char* mpi_name = "simulated";
// MPI_MODE_CREATE | MPI_MODE_WRONLY, and MPI_MODE_RDONLY: the same numbers in Open MPI and in MPICH.
constexpr std::int64_t writes_mode = 1 | 4, reads_mode = 2;

std::uint64_t tick_of(Seconds time) { return static_cast<std::uint64_t>(std::llround(time * 1e9)) + 1; }

void put_type(NodeWriter& writer, std::uint32_t thread, std::uint32_t number, Constructor constructor,
              std::int64_t size, std::int64_t extent, const std::vector<std::int64_t>& values, std::string text) {
    format::TypeRecord record{};
    record.type = number;
    record.constructor = static_cast<std::uint32_t>(constructor);
    record.size = size;
    record.extent = extent;
    record.digest = number;
    record.types = constructor == Constructor::named || constructor == Constructor::other ? 0 : 1;
    record.values = record.count = static_cast<std::uint32_t>(values.size());
    std::int64_t before = 0;
    for (const std::int64_t value : values) {
        std::byte bytes[16];
        const auto step = format::codec::zigzag(format::codec::difference(value, before));
        text.append(reinterpret_cast<const char*>(bytes),
                    static_cast<std::size_t>(format::codec::put_varint(bytes, step) - bytes));
        before = value;
    }
    writer.record(thread, record, text);
}

}  // namespace

/// One rank on its way into a node's file.
class NodeOfTrace {
public:
    NodeOfTrace(NodeWriter& writer, const Recorder& recorder, std::size_t place,
                const std::vector<const Recorder::Shape*>& shapes)
        : writer_(writer),
          recorder_(recorder),
          options_(recorder.options_),
          rank_(recorder.ranks_[place]),
          place_(static_cast<std::uint32_t>(place)),
          shapes_(shapes) {}

    void write() {
        const auto image = static_cast<std::uint64_t>(rank_.rank) + 1;
        const auto pid = static_cast<std::uint32_t>(rank_.rank + 1);
        thread_ = writer_.begin_thread(image, 1, pid, 1);
        writer_.record(thread_, format::ProcessRecord{{}, {}, {}, image, 0, pid, 0, 1}, "simulated");
        writer_.record(thread_, format::ClockRecord{{}, {}, {}, 1, 1, static_cast<std::uint64_t>(epoch_ns) + 1});
        format::AlignRecord align{};
        align.how = static_cast<std::uint32_t>(format::AlignKind::same_machine);
        align.tick = 1;
        align.reference_ns = static_cast<std::uint64_t>(epoch_ns) + 1;
        writer_.record(thread_, align);
        name_file(0);
        for (const Recorder::Entry& entry : rank_.entries) name_file(entry.file);
        writer_.record(thread_, format::RankRecord{{}, {}, {}, place_, count(), 1}, mpi_name);
        if (options_.by_engine) {
            note(format::NoteCode::plan_applied, options_.rule);
            put_engine_record();
        }
        put_entries();
        const std::uint64_t over = tick_of(recorder_.end());
        writer_.record(thread_, format::FinalizeRecord{{}, {}, {}, over});
        writer_.record(thread_, format::EndRecord{{}, {}, {}, over});
    }

private:
    using What = Recorder::What;

    /// A sample is a job of its own: means over its ranks are not means over those that are not in it.
    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(recorder_.kept().size()); }

    [[nodiscard]] std::string path_of(std::int64_t file) const {
        return file == 0 ? options_.path : options_.path + "." + std::to_string(file);
    }
    void name_file(std::int64_t file) {
        const auto [place, is_new] = files_.emplace(file, next_number_);
        if (!is_new) return;
        writer_.record(thread_, format::FileRecord{{}, {}, {}, next_number_++, 0}, path_of(file));
    }

    void note(format::NoteCode code, const std::string& words) {
        format::NoteRecord record{};
        record.code = static_cast<std::uint32_t>(code);
        record.tick = 1;
        writer_.record(thread_, record, path_of(0) + '\0' + words);
    }

    void put_engine_record() {
        format::EngineRecord record{};
        auto& figures = record.figures;
        for (const Recorder::Entry& entry : rank_.entries) {
            const auto took = static_cast<std::int64_t>(tick_of(entry.end) - tick_of(entry.begin));
            if (entry.what == What::operation) {
                ++figures.operations;
                figures.storage_ns += took;
            } else if (entry.what == What::call) {
                ++figures.calls;
                (entry.writes ? figures.written_bytes : figures.read_bytes) += entry.bytes;
                figures.elapsed_ns += took;
            }
        }
        figures.rounds = rank_.rounds;
        figures.exchanges = rank_.rounds > 0 ? figures.calls : 0;
        figures.messages = rank_.messages;
        figures.sent_bytes = rank_.handed_bytes;
        figures.exchange_ns = std::max<std::int64_t>(0, figures.elapsed_ns - figures.storage_ns);
        record.tick = tick_of(recorder_.end());
        writer_.record(thread_, record, path_of(0) + '\0');
    }

    /// The number by which events name the file, as this call uses it.
    std::uint32_t access_of(std::uint32_t shape, std::int64_t offset) {
        if (shape == 0) return access({0, 0}, [] { return 0U; });
        return access({shape, offset}, [&] {
            format::ViewRecord view{};
            view.view = ++views_;
            view.etype = bytes_type();
            view.filetype = type_of(shape);
            view.displacement = offset;
            writer_.record(thread_, view);
            return view.view;
        });
    }
    template <typename MakeView>
    std::uint32_t access(std::pair<std::uint32_t, std::int64_t> key, MakeView make_view) {
        const auto found = accesses_.find({key, handle_});
        if (found != accesses_.end()) return found->second;
        const std::uint32_t view = make_view();
        format::AccessRecord record{};
        record.access = next_number_++;
        record.file = files_.at(0);
        record.handle = handle_;
        record.view = view;
        record.ranks = count();
        writer_.record(thread_, record);
        accesses_.emplace(std::pair{key, handle_}, record.access);
        return record.access;
    }
    std::uint32_t bytes_type() {
        if (bytes_type_ == 0) {
            bytes_type_ = ++types_;
            put_type(writer_, thread_, bytes_type_, Constructor::named, 1, 1, {}, std::string("MPI_BYTE") + '\0');
        }
        return bytes_type_;
    }
    std::uint32_t type_of(std::uint32_t shape) {
        const auto found = shape_types_.find(shape);
        if (found != shape_types_.end()) return found->second;
        const std::uint32_t byte = bytes_type(), number = ++types_;
        shape_types_.emplace(shape, number);
        if (shape == 1) {
            put_type(writer_, thread_, number, Constructor::other, 0, 0, {}, {});
            return number;
        }
        const Recorder::Shape& pieces = *shapes_[shape];
        std::vector<std::int64_t> values{static_cast<std::int64_t>(pieces.size())};
        std::int64_t size = 0;
        for (const auto& [offset, length] : pieces) size += length;
        const auto length = pieces.front().second;
        const bool equal =
            std::all_of(pieces.begin(), pieces.end(), [&](const auto& one) { return one.second == length; });
        if (equal)
            values.push_back(length);
        else
            for (const auto& piece : pieces) values.push_back(piece.second);
        for (const auto& piece : pieces) values.push_back(piece.first);
        const std::int64_t extent = pieces.back().first + pieces.back().second;
        put_type(writer_, thread_, number, equal ? Constructor::hindexed_block : Constructor::hindexed, size, extent,
                 values, std::string(reinterpret_cast<const char*>(&byte), sizeof byte));
        return number;
    }

    void event(std::uint32_t thread, Function function, bool by_program, std::uint32_t file, std::uint32_t sequence,
               std::uint32_t parent, const Recorder::Entry& entry, std::int64_t offset) {
        format::EventFields fields;
        fields.function = static_cast<std::uint16_t>(function);
        const auto origin = by_program           ? format::Origin::application
                            : options_.by_engine ? format::Origin::engine
                                                 : format::Origin::mpi_library;
        fields.origin = static_cast<std::uint8_t>(origin);
        fields.file = file;
        fields.sequence = sequence;
        fields.parent = parent;
        fields.start = tick_of(entry.begin);
        fields.end = tick_of(entry.end);
        fields.offset = offset;
        fields.bytes = entry.bytes;
        writer_.event(thread, fields);
    }

    void put_operation(std::uint32_t thread, const Recorder::Entry& entry, std::uint32_t sequence,
                       std::uint32_t parent) {
        event(thread, entry.writes ? Function::pwrite : Function::pread, false, files_.at(entry.file), sequence, parent,
              entry, entry.offset);
    }

    void put_entries() {
        std::vector<const Recorder::Entry*> inside, behind;
        std::uint32_t sequence = 0;
        for (const Recorder::Entry& entry : rank_.entries) {
            if (entry.what == What::open) has_written_ = false;
            if (entry.what == What::operation) {
                inside.push_back(&entry);
                has_written_ = true;
                continue;
            }
            const std::uint32_t own = ++sequence;
            for (const Recorder::Entry* operation : inside) {
                // What begins before a call that ends after it is written behind the program.
                if (entry.what != What::call || operation->begin < entry.begin || operation->end > entry.end)
                    behind.push_back(operation);
                else
                    put_operation(thread_, *operation, ++sequence, own);
            }
            inside.clear();
            put_outer(entry, own, sequence);
        }
        behind.insert(behind.end(), inside.begin(), inside.end());
        put_behind(behind);
    }

    void put_outer(const Recorder::Entry& entry, std::uint32_t own, std::uint32_t& sequence) {
        switch (entry.what) {
            case What::open:
                ++handle_;
                event(thread_, Function::open_, false, files_.at(0), ++sequence, own, entry, -1);
                return event(thread_, Function::MPI_File_open, true, files_.at(0), own, 0, entry,
                             entry.writes ? writes_mode : reads_mode);
            case What::sync:
                if (has_written_) event(thread_, Function::fsync, false, files_.at(0), ++sequence, own, entry, -1);
                return event(thread_, Function::MPI_File_sync, true, files_.at(0), own, 0, entry, -1);
            case What::close:
                event(thread_, Function::close_, false, files_.at(0), ++sequence, own, entry, -1);
                return event(thread_, Function::MPI_File_close, true, files_.at(0), own, 0, entry, -1);
            default:
                break;
        }
        const Function function =
            options_.alone ? (entry.writes ? Function::MPI_File_write_at : Function::MPI_File_read_at)
                           : (entry.writes ? Function::MPI_File_write_at_all : Function::MPI_File_read_at_all);
        event(thread_, function, true, access_of(entry.shape, entry.offset), own, 0, entry,
              entry.shape == 0 ? entry.offset : 0);
    }

    /// By a thread of the engine's own, one after the other.
    void put_behind(const std::vector<const Recorder::Entry*>& operations) {
        if (operations.empty()) return;
        const auto image = static_cast<std::uint64_t>(rank_.rank) + 1;
        const std::uint32_t thread = writer_.begin_thread(image, 2, static_cast<std::uint32_t>(rank_.rank + 1), 1);
        std::uint32_t sequence = 0;
        for (const Recorder::Entry* operation : operations) put_operation(thread, *operation, ++sequence, 0);
    }

    NodeWriter& writer_;
    const Recorder& recorder_;
    const RecorderOptions& options_;
    const Recorder::Rank& rank_;
    std::uint32_t place_;
    const std::vector<const Recorder::Shape*>& shapes_;
    std::uint32_t thread_ = 0, next_number_ = 1, handle_ = 0, types_ = 0, views_ = 0, bytes_type_ = 0;
    bool has_written_ = false;
    std::map<std::int64_t, std::uint32_t> files_;
    std::map<std::pair<std::pair<std::uint32_t, std::int64_t>, std::uint32_t>, std::uint32_t> accesses_;
    std::map<std::uint32_t, std::uint32_t> shape_types_;
};

Result<bool> Recorder::write(const std::string& directory) const {
    std::vector<const Shape*> shapes(shapes_.size() + 2, nullptr);
    for (const auto& [shape, number] : shapes_) shapes[number] = &shape;
    const auto node_of = [&](std::size_t place) {
        return topology_.node_of[static_cast<std::size_t>(ranks_[place].rank)];
    };
    for (std::size_t first = 0; first < ranks_.size();) {
        const int node = node_of(first);
        auto writer = NodeWriter::create(directory + "/node-" + std::to_string(node) + ".iowt",
                                         "simulated-" + std::to_string(node), epoch_ns);
        if (!writer) return writer.error();
        std::size_t last = first;
        for (; last < ranks_.size() && node_of(last) == node; ++last)
            NodeOfTrace(writer.value(), *this, last, shapes).write();
        if (first == 0 && left_out_ > 0) writer.value().dropped(static_cast<std::uint64_t>(left_out_));
        if (auto finished = writer.value().finish(); !finished) return finished.error();
        first = last;
    }
    return true;
}

}  // namespace ioweir::sim
