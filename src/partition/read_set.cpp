#include "partition/read_set.hpp"

#include <utility>
#include <vector>

#include "exchange/delivery.hpp"
#include "ioweir/ioweir.h"

namespace ioweir::partition {
namespace {

std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
}

std::vector<std::string> lines_in(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

}  // namespace

Failure ReadSet::failure_of(const Error& error) {
    const bool absent =
        error.what == no_set || error.what == no_complete_set || error.what == no_field || error.what == no_part;
    return {absent ? IOWEIR_ERR_NOT_FOUND : IOWEIR_ERR_DAMAGED, error};
}

std::optional<Failure> ReadSet::open(MPI_Comm comm, const std::string& base, std::int64_t step, MPI_Info info,
                                     std::unique_ptr<ReadSet>& made) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    std::optional<Failure> failure = agree(comm, check_reading(info));
    if (failure) return failure;
    std::optional<SetReader> reader;
    std::vector<std::string> facts(5);
    if (rank == 0) {
        const auto last = step < 0 ? SetReader::last_step(base) : Result<std::int64_t>(step);
        auto opened = last ? SetReader::open(base, last.value()) : Result<SetReader>(last.error());
        if (opened) {
            reader = opened.take();
            facts = {base, std::to_string(reader->name().step), reader->name().directories ? "1" : "0",
                     reader->has_manifest() ? "1" : "0", std::to_string(reader->fields().size())};
            facts.insert(facts.end(), reader->fields().begin(), reader->fields().end());
        } else {
            failure = failure_of(opened.error());
        }
    }
    if ((failure = agree(comm, failure))) return failure;
    std::string lines = joined(facts), text = reader ? to_text(reader->manifest()) : "";
    (void)exchange::broadcast(comm, lines);
    (void)exchange::broadcast(comm, text);
    facts = lines_in(lines);
    if (!reader) {
        const SetName name{facts[0], std::stoll(facts[1]), facts[2] == "1"};
        const std::vector<std::string> fields(facts.begin() + 5, facts.end());
        auto manifest = parse_manifest(text);
        if (!manifest) return failure_of(manifest.error());  // rank 0 has just written it
        reader.emplace(name, facts[3] == "1", manifest.take(), fields);
    }
    const Span mine = level_share(reader->manifest().parts(), ranks, rank);
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(comm, &own);
    made.reset(new ReadSet(own, std::move(*reader), mine, hints_of(info)));
    return std::nullopt;
}

std::optional<Failure> ReadSet::find(const std::string& field, std::int64_t part, std::int64_t bytes,
                                     PartFile::Block& block, PartFile*& file) {
    if (part < mine_.first || part >= mine_.end())
        return argument("a part of another rank", std::to_string(part + 1),
                        "collective reads are of ioweir_set_my_parts(): " + std::to_string(mine_.first + 1) + " to " +
                            std::to_string(mine_.end()));
    auto asked = reader_.sized_block(field, part, bytes);
    if (!asked) return failure_of(asked.error());
    const auto found = reader_.find(part);
    if (!found) return failure_of(found.error());
    block = asked.take();
    file = found.value().file;
    return std::nullopt;
}

std::optional<Failure> ReadSet::read_all(const std::string& field, std::int64_t part, void* data, std::int64_t bytes,
                                         std::int64_t item_bytes, std::optional<Failure> mine) {
    if (!together_) {
        if (auto failure = ReadTogether::open(comm_, reader_, hints_, together_)) return failure;
    }
    PartFile::Block block;
    PartFile* file = nullptr;
    if (!mine && part >= 0) mine = find(field, part, bytes, block, file);
    const std::int64_t number = file != nullptr ? reader_.manifest().file_of_part(part) : -1;
    auto failure = together_->read(number, block.items_at, data, file != nullptr ? bytes : 0);
    if (mine) return mine;
    if (!failure && file != nullptr) file->turn(data, bytes, item_bytes);
    return failure;
}

}  // namespace ioweir::partition
