#include "adapters/hdf5/datasets.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "adapters/hdf5/unfilled.hpp"
#include "base/size_text.hpp"

namespace ioweir::hdf5 {
namespace {

/// What a program wants to make.
struct Wanted {
    std::string name;
    Shape lengths;
    bool fixed = true;  ///< it cannot grow
    std::int64_t element_bytes = 0;
};

Shape shape_of(const std::array<Size, most_dimensions>& numbers, int count) {
    return {numbers.begin(), numbers.begin() + count};
}

/// Empty lengths: no simple space, or one without elements.
Wanted wanted_by(const Library& library, const CreateForm& form, const Call& call) {
    Wanted wanted;
    const char* name = form.name >= 0 ? argument<const char*>(call, form.name) : nullptr;
    wanted.name = name != nullptr ? name : "";
    const Id space = argument<Id>(call, form.space);
    std::array<Size, most_dimensions> lengths{};
    std::array<Size, most_dimensions> most{};
    if (library.H5Sget_simple_extent_type(space) != space_simple) return wanted;
    const int dimensions = library.H5Sget_simple_extent_dims(space, lengths.data(), most.data());
    if (dimensions < 1 || library.H5Sget_simple_extent_npoints(space) < 1) return wanted;
    wanted.lengths = shape_of(lengths, dimensions);
    wanted.fixed = wanted.lengths == shape_of(most, dimensions);
    wanted.element_bytes = static_cast<std::int64_t>(library.H5Tget_size(argument<Id>(call, form.type)));
    return wanted;
}

/// Why the dataset has to stay as the program wants it; empty: it need not.
std::string why_not_chunked(const File& file, const Wanted& wanted, Id list, Id type) {
    const Library& library = *file.library;
    const int layout = library.H5Pget_layout(list);
    if (layout == layout_chunked) return "the program has given it chunks";
    if (layout != layout_contiguous) return "its layout is compact or virtual";
    if (library.H5Pget_external_count(list) > 0) return "its bytes lie in external files";
    if (wanted.lengths.empty()) return "it has no elements";
    if (!wanted.fixed) return "it can grow";
    if (library.H5Tdetect_class(type, class_vlen) > 0) return "its elements differ in length";
    return "";
}

/// Of several patterns that fit the longest.
const policy::Hdf5Chunks* chunks_for(const policy::Hdf5Options& wish, const std::string& name) {
    const policy::Hdf5Chunks* best = nullptr;
    for (const policy::Hdf5Chunks& one : wish.chunks)
        if (::fnmatch(one.dataset.c_str(), name.c_str(), 0) == 0 &&
            (best == nullptr || one.dataset.size() > best->dataset.size()))
            best = &one;
    return best;
}

/// The shape that the rule gives; empty, with the reason, where there is none.
Shape given_shape(const File& file, const Wanted& wanted, std::string& why_not) {
    const policy::Hdf5Chunks* given = chunks_for(file.wish(), wanted.name);
    if (given == nullptr) return {};
    if (given->shape.size() != wanted.lengths.size()) {
        why_not = "the plan's chunks have " + std::to_string(given->shape.size()) + " dimensions, and it has " +
                  std::to_string(wanted.lengths.size());
        return {};
    }
    Shape shape = given->shape;
    for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = std::min(shape[d], wanted.lengths[d]);
    if (volume(shape) > ((std::int64_t{1} << 32) - 1) / std::max<std::int64_t>(1, wanted.element_bytes)) {
        why_not = "HDF5's chunks are smaller than 4 GiB";
        return {};
    }
    return shape;
}

/// A pattern for the name and for those that differ in their numbers only, such as one for each step.
std::string pattern_of(const std::string& name) {
    std::string pattern;
    bool in_number = false;
    for (const char letter : name) {
        const bool is_digit = letter >= '0' && letter <= '9';
        if (is_digit && !in_number) pattern += '*';
        in_number = is_digit;
        if (is_digit) continue;
        if (letter == '*' || letter == '?' || letter == '[' || letter == '\\') pattern += '\\';
        pattern += letter;
    }
    return pattern;
}

/// The shape that an earlier dataset teaches. `watch`: this one is the first, or was not written yet.
Shape learned_shape(const File& file, Lessons& lessons, const Wanted& wanted, bool& watch, std::string& why_not) {
    const Lessons::Key key{wanted.lengths, wanted.element_bytes};
    const std::optional<Lessons::Lesson> lesson = lessons.find(key);
    if (!lesson) {
        watch = true;
        why_not = "it is the first of its shape";
        return {};
    }
    Learned learned = lesson->learned;
    if (!lesson->settled) {
        learned = learn(lesson->first, wanted.lengths, wanted.element_bytes, file.comm, file.parallel ? file.ranks : 1);
        lessons.settle(key, learned);
        watch = learned.nobody;
        if (!learned.shape.empty())
            file.note("learned: chunks = { " + policy::toml_string(pattern_of(wanted.name)) + " = " +
                      text_of(learned.shape) + " }");
    }
    why_not = learned.why_not;
    return learned.shape;
}

/// Has the name of a new dataset led to another file than its place lies in, one that is mounted there or linked to?
bool lies_elsewhere(const Library& library, Id place, Id dataset) {
    const Quiet quiet(library);
    const auto of_place = place_of(library, place), of_dataset = place_of(library, dataset);
    return of_place && of_dataset && of_place->opening != of_dataset->opening;
}

/// Gives the dataset chunks, if it may have them.
void give_chunks(File& file, Lessons& lessons, const Wanted& wanted, Id list, Id type,
                 std::optional<Lessons::Key>& watched) {
    const policy::Hdf5Options& wish = file.wish();
    std::string why_not = why_not_chunked(file, wanted, list, type);
    Shape shape;
    bool watch = false;
    if (why_not.empty()) {
        if (wish.learn_chunks)
            shape = learned_shape(file, lessons, wanted, watch, why_not);
        else
            shape = given_shape(file, wanted, why_not);
    }
    if (watch) watched = Lessons::Key{wanted.lengths, wanted.element_bytes};
    if (shape.empty()) {
        if (!why_not.empty() && file.names("no chunks: " + why_not))
            file.note("no chunks for " + wanted.name + ": " + why_not);
        return;
    }
    std::array<Size, most_dimensions> sizes{};
    std::copy(shape.begin(), shape.end(), sizes.begin());
    if (file.library->H5Pset_chunk(list, static_cast<int>(shape.size()), sizes.data()) < 0) {
        file.refuse("chunks " + text_of(shape) + ": HDF5 " + file.library->version() + " does not take them");
        return;
    }
    const std::int64_t chunks = chunks_of(wanted.lengths, shape);
    lessons.count_chunks(chunks);
    ++file.chunked;
    const std::string what = std::to_string(chunks) + (chunks > 1 ? " chunks of " : " chunk of ") + text_of(shape) +
                             ", " + exact_size_text(volume(shape) * wanted.element_bytes) + (chunks > 1 ? " each" : "");
    if (file.names(what)) file.note(wanted.name + ": " + what);
}

}  // namespace

std::optional<Lessons::Lesson> Lessons::find(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = lessons_.find(key);
    if (found == lessons_.end()) return std::nullopt;
    return found->second;
}

void Lessons::begin(const Key& key) {
    const std::lock_guard lock(mutex_);
    lessons_.try_emplace(key);
}

void Lessons::tell(const Key& key, const Box& first) {
    const std::lock_guard lock(mutex_);
    Lesson& lesson = lessons_[key];
    if (!lesson.first.seen) lesson.first = first;
}

void Lessons::settle(const Key& key, const Learned& learned) {
    const std::lock_guard lock(mutex_);
    Lesson& lesson = lessons_[key];
    lesson.learned = learned;
    lesson.settled = !learned.nobody;
}

std::int64_t Lessons::most_chunks() const {
    const std::lock_guard lock(mutex_);
    return most_chunks_;
}

void Lessons::count_chunks(std::int64_t chunks) {
    const std::lock_guard lock(mutex_);
    most_chunks_ = std::max(most_chunks_, chunks);
}

Word create_dataset(File& file, Lessons& lessons, const CreateForm& form, const Call& call,
                    std::optional<Lessons::Key>& watched) {
    const Library& library = *file.library;
    const policy::Hdf5Options& wish = file.wish();
    FailedCall failed(library);
    const List list(library, argument<Id>(call, form.list), library.dataset_create);
    std::array<Word, 16> arguments{};
    std::copy_n(call.arguments, call.count, arguments.begin());
    NewDataset about;
    Filling filling = Filling::as_program;
    if (list) {
        const Quiet quiet(library);
        const Wanted wanted = wanted_by(library, form, call);
        about = {wanted.name,
                 wanted.lengths,
                 wanted.fixed,
                 library.H5Pget_layout(list.id()),
                 argument<Id>(call, form.type),
                 wanted.element_bytes};
        if (wish.learn_chunks || !wish.chunks.empty())
            give_chunks(file, lessons, wanted, list.id(), about.type, watched);
        keep_unfilled(file, about, list.id());
        if (wish.never_fill && !file.lingers) filling = choose_filling(file, about, list.id());
        arguments[static_cast<std::size_t>(form.list)] = word_of(list.id());
    } else {
        file.refuse("datasets: the program's list cannot be copied");
    }
    const Word result = call.go_on(arguments.data());
    if (static_cast<Id>(result) < 0) {
        failed.keep_errors();
        watched.reset();
    } else if (filling == Filling::later) {
        const auto made = static_cast<Id>(result);
        if (lies_elsewhere(library, argument<Id>(call, 0), made))
            fill_now(file, made, about);
        else
            file.unfilled->add(library, made, about);
    }
    return result;
}

Box box_of(const Library& library, Id space, const Shape& dataset) {
    Box box;
    box.seen = true;
    if (space == by_default) {
        box.start.assign(dataset.size(), 0);
        box.count = dataset;
        return box;
    }
    const std::int64_t points = library.H5Sget_select_npoints(space);
    if (points == 0) return box;
    std::array<Size, most_dimensions> first{};
    std::array<Size, most_dimensions> last{};
    if (points < 0 || library.H5Sget_select_bounds(space, first.data(), last.data()) < 0) {
        box.solid = false;
        return box;
    }
    for (std::size_t d = 0; d < dataset.size(); ++d) {
        box.start.push_back(static_cast<std::int64_t>(first[d]));
        box.count.push_back(static_cast<std::int64_t>(last[d] - first[d] + 1));
    }
    box.solid = volume(box.count) == points;
    return box;
}

}  // namespace ioweir::hdf5
