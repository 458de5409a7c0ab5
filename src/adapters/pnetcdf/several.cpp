// Calls for several variables (mput, mget): begun one by one as non-blocking calls and waited for together, which is what the library does. Some
// may be divided, others the master's.
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/pnetcdf/arguments.hpp"
#include "adapters/pnetcdf/file.hpp"
#include "ncsub/call_form.hpp"

namespace ioweir::pnetcdf {
namespace {

using ncsub::Access;
using ncsub::CallForm;

/// "ncmpi_mput_vara_int_all" is done by "ncmpi_iput_vara_int".
std::string symbol_of_one(std::string_view symbol) {
    constexpr std::string_view several = "ncmpi_m", all = "_all";
    symbol.remove_prefix(several.size());
    if (symbol.ends_with(all)) symbol.remove_suffix(all.size());
    return "ncmpi_i" + std::string(symbol);
}

/// The arguments of the call for variable `number`, of which those of the whole call are lists.
std::vector<Word> arguments_of_one(const Call& call, const CallForm& form, int number, int* request) {
    const auto pointer_in = [&](int place) {
        const auto* list = argument<const void* const*>(call, place);
        return word_of(list != nullptr ? list[number] : nullptr);
    };
    std::vector<Word> words{call.arguments[0], word_of(argument<const int*>(call, 2)[number])};
    int place = 3;
    // Starts, counts, strides and maps, as many as the form has.
    for (const int has : {form.start(), form.count(), form.stride(), form.map()})
        if (has >= 0) words.push_back(pointer_in(place++));
    words.push_back(pointer_in(place++));
    if (form.element == ncsub::Element::described) {
        words.push_back(word_of(argument<const Offset*>(call, place)[number]));
        words.push_back(word_of(argument<const MPI_Datatype*>(call, place + 1)[number]));
    }
    words.push_back(word_of(request));
    return words;
}

int wrong_mode(const File& file, const CallForm& form) {
    if (form.writes() && !file.writable) return error_permission;
    if (file.state == File::State::define) return error_in_define;
    if (form.collective && file.state == File::State::independent) return error_independent;
    if (!form.collective && file.state == File::State::data) return error_collective;
    return no_error;
}

/// One access, begun. The variable's id may be wrong, which the library says.
int begin_one(File& file, const Call& one) {
    if (file.is_divided(argument<int>(one, 1))) return access_variable(file, one);
    std::vector<Word> words(one.arguments, one.arguments + one.count);
    words[0] = word_of(file.master);
    return static_cast<int>(one.invoke(one.real, words.data(), one.count));
}

/// Waits for requests, or gives them up: a call as the program would make it.
int finish(File& file, const Call& call, std::vector<int>& requests, int (*how)(File&, const Call&)) {
    const std::array<Word, 4> words{call.arguments[0], word_of(static_cast<int>(requests.size())),
                                    word_of(requests.data()), word_of(static_cast<int*>(nullptr))};
    Call wait = call;
    wait.arguments = words.data();
    wait.count = static_cast<int>(words.size());
    return how(file, wait);
}

}  // namespace

int access_several(File& file, const Call& call) {
    const auto form = *ncsub::parse_call(call.symbol);
    if (const int error = wrong_mode(file, form); error != no_error) return error;
    const auto count = argument<int>(call, 1);
    const std::string symbol = symbol_of_one(call.symbol);
    void* real = file.host.find(call.real, symbol.c_str());
    int error = no_error, range = no_error;
    if (real == nullptr) {
        complain(file, std::string(call.symbol) + " was refused: the PnetCDF library has no " + symbol);
        error = error_unsupported;
    }
    std::vector<int> requests;
    for (int i = 0; i < count && error == no_error; ++i) {
        int request = no_request;
        const std::vector<Word> words = arguments_of_one(call, form, i, &request);
        Call one = call;
        one.symbol = symbol.c_str();
        one.real = real;
        one.arguments = words.data();
        one.count = static_cast<int>(words.size());
        error = begin_one(file, one);
        if (error == error_range) range = std::exchange(error, no_error);  // which is begun all the same
        if (request != no_request) requests.push_back(request);
    }
    if (file.safe && form.collective) error = agree(file, error);
    // With an error nothing is done, but other ranks are not left alone.
    if (error != no_error) {
        (void)finish(file, call, requests, cancel);
        requests.clear();
    }
    const int waited = finish(file, call, requests, form.collective ? wait_all : wait_alone);
    if (error != no_error) return error;
    return waited != no_error ? waited : range;
}

}  // namespace ioweir::pnetcdf
