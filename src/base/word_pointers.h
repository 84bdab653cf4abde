#pragma once
// Texts in the form in which exec, spawn and libraries of C take lists of words.
#include <string>
#include <vector>

namespace hotlap {

// A pointer to each text and a null pointer behind the last. Valid until `texts` changes or moves.
inline std::vector<char*> word_pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace hotlap
