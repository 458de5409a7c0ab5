// Writes the inputs that fuzzing begins with: reader_seeds DIRECTORY.
#include <cstdio>
#include <string>

#include "format/reader_fuzz.hpp"

int main(int count, char** words) {
    if (count != 2) {
        std::fprintf(stderr, "reader_seeds DIRECTORY: where to write the inputs\n");
        return 2;
    }
    int number = 0;
    for (const auto& trace : ioweir::format::whole_traces()) {
        const std::vector<std::uint8_t> input = ioweir::format::pack(trace);
        const std::string path = std::string(words[1]) + "/seed-" + std::to_string(number++);
        std::FILE* file = std::fopen(path.c_str(), "wb");
        const bool written = file != nullptr && std::fwrite(input.data(), 1, input.size(), file) == input.size();
        if (!written || std::fclose(file) != 0) {
            std::perror(path.c_str());
            return 1;
        }
    }
    return 0;
}
