#include "partition/read_set.hpp"

#include <utility>
#include <vector>

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

std::optional<Failure> ReadSet::open(MPI_Comm comm, const std::string& base, std::int64_t step,
                                     std::unique_ptr<ReadSet>& made) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    std::optional<Failure> failure;
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
    facts = lines_in(text_of_first(comm, joined(facts)));
    const std::string text = text_of_first(comm, reader ? to_text(reader->manifest()) : "");
    if (!reader) {
        const SetName name{facts[0], std::stoll(facts[1]), facts[2] == "1"};
        const std::vector<std::string> fields(facts.begin() + 5, facts.end());
        auto manifest = parse_manifest(text);
        if (!manifest) return failure_of(manifest.error());  // rank 0 has just written it
        reader.emplace(name, facts[3] == "1", manifest.take(), fields);
    }
    const Span mine = level_share(reader->manifest().parts(), ranks, rank);
    made.reset(new ReadSet(std::move(*reader), mine));
    return std::nullopt;
}

}  // namespace ioweir::partition
