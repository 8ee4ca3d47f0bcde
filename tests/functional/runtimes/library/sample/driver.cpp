// Runs one question after the other and prints the answers: `driver QUESTION...`
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "sample.h"

static void ask(const std::string& question) {
  if (question == "ordinary") {
    for (int how = 0; how < 7; how++) printf("catches %d: %s\n", how, kept_catches(how).c_str());
    for (int which : {0, 2, 3, 4, 5, 6, 7, 8}) printf("switch %d: %d\n", which, kept_switch(which));
    for (int which : {0, 700, 1499}) printf("constants %d: %f\n", which, kept_constants(which));
    printf("thread locals: %s\n", kept_thread_locals().c_str());
    printf("constructed: %s\n", kept_constructed().c_str());
    for (int value : kept_through_table(4)) printf("table: %d\n", value);
    try {
      kept_through_table(8);
    } catch (int value) {
      printf("table threw %d\n", value);
    }
    printf("name: %s\n", kept_shape()->kept_name().c_str());
  } else if (question == "local") {
    printf("%d\n", kept_calls_removed_local(1));
  } else if (question == "exported") {
    printf("%d\n", kept_calls_removed_exported(1));
  } else if (question == "from here") {
    printf("%d\n", removed_exported(1));
  } else if (question == "address") {
    printf("%d\n", kept_takes_address(1));
  } else if (question == "table") {
    printf("%d\n", kept_calls_from_table(1));
  } else if (question == "jump") {
    printf("%d\n", kept_jumps_to_removed(1));
  } else if (question == "virtual") {
    printf("%d\n", kept_shape()->removed_area());
  } else if (question == "unlisted") {
    printf("%d\n", removed_unlisted(1));
  } else if (question == "constant") {
    printf("%f\n", kept_reads_removed_constant(700));
  } else if (question.rfind("at ", 0) == 0) {
    printf("%d\n", kept_through_unknown(atol(question.c_str() + 3), 1));
  }
}

int main(int count, char** questions) {
  for (int i = 1; i < count; i++) {
    try {
      ask(questions[i]);
    } catch (const std::exception& error) {
      printf("raised: %s\n", error.what());
    }
  }
  fflush(stdout);
}
