/* ioweir.hpp: ioweir.h (which says what each argument means) from C++17. Handles close themselves, and what fails is thrown as ioweir::Failed, on the ranks that have the error.
 *
 *   ioweir::SetWriter set(MPI_COMM_WORLD, "run/restart", step, parts, files, {"solution", "errors"});
 *   set.write("solution", 0, values);          // std::vector<double> or std::vector<std::int32_t>
 *   set.write("errors", 0, errors, {n, 1});    // with parameters
 *   set.close();                               // the set appears
 *
 *   ioweir::SetReader last(MPI_COMM_WORLD, "run/restart");
 *   for (std::int64_t part : last.my_parts()) values = last.read<double>("solution", part);
 */
#ifndef IOWEIR_HPP
#define IOWEIR_HPP

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ioweir/ioweir.h"

namespace ioweir {

/// An error code of ioweir.h (IOWEIR_ERR_...) with its text.
class Failed : public std::runtime_error {
public:
    explicit Failed(int code) : std::runtime_error(ioweir_error_text()), code_(code) {}
    int code() const noexcept { return code_; }

private:
    int code_;
};

namespace detail {

inline void check(int code) {
    if (code != IOWEIR_SUCCESS) throw Failed(code);
}

template <typename Item>
constexpr int type_of() {
    static_assert(std::is_same_v<Item, double> || std::is_same_v<Item, std::int32_t>,
                  "items are double or std::int32_t");
    return std::is_same_v<Item, double> ? IOWEIR_FLOAT64 : IOWEIR_INT32;
}

}  // namespace detail

using Parameters = std::vector<std::int64_t>;

/// Dedicated writers. On delegates call run(), and nothing else but end().
class Service {
public:
    /// Collective over `comm`: ioweir_split().
    explicit Service(MPI_Comm comm, std::int64_t delegates = 0, MPI_Info info = MPI_INFO_NULL) {
        detail::check(ioweir_split(comm, delegates, info, &workers_, &service_));
    }
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;
    Service(Service&& other) noexcept : workers_(other.workers_), service_(std::exchange(other.service_, nullptr)) {}
    Service& operator=(Service&&) = delete;
    /// Ends the service (collective), what fails then unsaid: call end() to be told. Not while an exception passes: other ranks may not come.
    ~Service() {
        if (service_ != nullptr && std::uncaught_exceptions() == exceptions_) (void)ioweir_service_end(&service_);
    }

    bool is_delegate() const noexcept { return workers_ == MPI_COMM_NULL; }
    /// To compute with; of workers.
    MPI_Comm workers() const noexcept { return workers_; }
    void run() { detail::check(ioweir_service_run(service_)); }
    void wait() { detail::check(ioweir_service_wait(service_)); }
    /// Collective.
    void end() { detail::check(ioweir_service_end(&service_)); }
    ioweir_service* get() const noexcept { return service_; }

private:
    MPI_Comm workers_ = MPI_COMM_NULL;
    ioweir_service* service_ = nullptr;
    int exceptions_ = std::uncaught_exceptions();
};

class SetWriter {
public:
    /// Collective over `comm`: ioweir_set_create().
    SetWriter(MPI_Comm comm, const std::string& base, std::int64_t step, std::int64_t parts, std::int64_t files,
              const std::vector<std::string>& fields, MPI_Info info = MPI_INFO_NULL) {
        const std::vector<const char*> names = names_of(fields);
        detail::check(ioweir_set_create(comm, base.c_str(), step, parts, files, static_cast<int>(names.size()),
                                        names.data(), info, &set_));
    }
    /// Collective over the workers: ioweir_set_create_by(). `service` must outlive this.
    SetWriter(Service& service, const std::string& base, std::int64_t step, std::int64_t parts, std::int64_t files,
              const std::vector<std::string>& fields, MPI_Info info = MPI_INFO_NULL) {
        const std::vector<const char*> names = names_of(fields);
        detail::check(ioweir_set_create_by(service.get(), base.c_str(), step, parts, files,
                                           static_cast<int>(names.size()), names.data(), info, &set_));
    }
    SetWriter(const SetWriter&) = delete;
    SetWriter& operator=(const SetWriter&) = delete;
    SetWriter(SetWriter&& other) noexcept : set_(std::exchange(other.set_, nullptr)) {}
    SetWriter& operator=(SetWriter&&) = delete;
    /// Without close(): no set (collective). Not while an exception passes: other ranks may not come; then what was written stays, hidden.
    ~SetWriter() {
        if (set_ != nullptr && std::uncaught_exceptions() == exceptions_) (void)ioweir_set_abandon(&set_);
    }

    /// ioweir_set_write(): `items` of part `part` of this rank, from 0.
    template <typename Item>
    void write(const std::string& field, std::int64_t part, const Item* data, std::int64_t items,
               const Parameters& parameters = {}) {
        detail::check(ioweir_set_write(set_, field.c_str(), part, detail::type_of<Item>(), items,
                                       static_cast<int>(parameters.size()), parameters.data(), data));
    }
    template <typename Item>
    void write(const std::string& field, std::int64_t part, const std::vector<Item>& data,
               const Parameters& parameters = {}) {
        write(field, part, data.data(), static_cast<std::int64_t>(data.size()), parameters);
    }
    /// Of a rank that has no part left where others have: the call is collective.
    void write_none(const std::string& field) {
        detail::check(ioweir_set_write(set_, field.c_str(), IOWEIR_NO_PART, IOWEIR_FLOAT64, 0, 0, nullptr, nullptr));
    }
    ioweir_figures figures() const {
        ioweir_figures found;
        detail::check(ioweir_set_figures(set_, &found));
        return found;
    }
    /// Collective: the set appears, or no rank's call returns.
    void close() { detail::check(ioweir_set_close(&set_)); }
    void abandon() { detail::check(ioweir_set_abandon(&set_)); }
    ioweir_set* get() const noexcept { return set_; }

private:
    static std::vector<const char*> names_of(const std::vector<std::string>& fields) {
        std::vector<const char*> names;
        for (const std::string& field : fields) names.push_back(field.c_str());
        return names;
    }

    ioweir_set* set_ = nullptr;
    int exceptions_ = std::uncaught_exceptions();
};

class SetReader {
public:
    /// Collective over `comm`: ioweir_set_open(). step -1: the last complete one.
    explicit SetReader(MPI_Comm comm, const std::string& base, std::int64_t step = -1, MPI_Info info = MPI_INFO_NULL) {
        detail::check(ioweir_set_open(comm, base.c_str(), step, info, &set_));
    }
    SetReader(const SetReader&) = delete;
    SetReader& operator=(const SetReader&) = delete;
    SetReader(SetReader&& other) noexcept : set_(std::exchange(other.set_, nullptr)) {}
    SetReader& operator=(SetReader&&) = delete;
    ~SetReader() {
        if (set_ != nullptr) (void)ioweir_set_close(&set_);
    }

    std::int64_t step() const { return numbers().step; }
    std::int64_t files() const { return numbers().files; }
    /// Of the whole set.
    std::int64_t parts() const { return numbers().parts; }
    std::vector<std::string> fields() const {
        std::vector<std::string> names;
        for (int i = 0; i < numbers().fields; ++i) {
            const char* name = nullptr;
            detail::check(ioweir_set_field(set_, i, &name));
            names.emplace_back(name);
        }
        return names;
    }
    /// This rank's share, numbers from 1.
    std::vector<std::int64_t> my_parts() const {
        std::int64_t first = 0, count = 0;
        detail::check(ioweir_set_my_parts(set_, &first, &count));
        std::vector<std::int64_t> parts;
        for (std::int64_t i = 0; i < count; ++i) parts.push_back(first + i);
        return parts;
    }
    Parameters parameters(const std::string& field, std::int64_t part) const {
        int count = 0;
        detail::check(ioweir_set_query(set_, field.c_str(), part, nullptr, &count, nullptr));
        Parameters found(static_cast<std::size_t>(count));
        detail::check(ioweir_set_query(set_, field.c_str(), part, nullptr, &count, found.data()));
        return found;
    }
    /// Of the items of a block.
    std::int64_t bytes(const std::string& field, std::int64_t part) const {
        std::int64_t held = 0;
        detail::check(ioweir_set_query(set_, field.c_str(), part, &held, nullptr, nullptr));
        return held;
    }
    /// All items of a block, of part `part` among all, from 1.
    template <typename Item>
    std::vector<Item> read(const std::string& field, std::int64_t part) const {
        const std::int64_t held = bytes(field, part);
        std::vector<Item> items(static_cast<std::size_t>(held) / sizeof(Item));
        detail::check(ioweir_set_read(set_, field.c_str(), part, detail::type_of<Item>(), held, items.data()));
        return items;
    }
    /// Collective: the same for a part of this rank's share on each rank; part IOWEIR_NO_PART: nothing, for others' sake.
    template <typename Item>
    std::vector<Item> read_all(const std::string& field, std::int64_t part) const {
        int failed = IOWEIR_SUCCESS;
        std::int64_t held = 0, asked = part;
        if (part != IOWEIR_NO_PART) failed = ioweir_set_query(set_, field.c_str(), part, &held, nullptr, nullptr);
        const Failed why(failed);
        if (failed != IOWEIR_SUCCESS) asked = IOWEIR_NO_PART;  // the call is still made: other ranks are in it
        std::vector<Item> items(static_cast<std::size_t>(held) / sizeof(Item));
        const int code = ioweir_set_read_all(set_, field.c_str(), asked, detail::type_of<Item>(), held, items.data());
        if (failed != IOWEIR_SUCCESS) throw why;
        detail::check(code);
        return items;
    }
    ioweir_set* get() const noexcept { return set_; }

private:
    struct Numbers {
        std::int64_t step = 0, files = 0, parts = 0;
        int fields = 0;
    };
    Numbers numbers() const {
        Numbers found;
        detail::check(ioweir_set_inquire(set_, &found.step, &found.files, &found.parts, &found.fields));
        return found;
    }

    ioweir_set* set_ = nullptr;
};

}  // namespace ioweir

#endif
