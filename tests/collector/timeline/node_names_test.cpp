#include "collector/timeline/node_names.h"

#include <doctest/doctest.h>

using namespace sphase;

TEST_CASE("numbers in node names compare as numbers") {
  CHECK(node_less("n2", "n10"));
  CHECK_FALSE(node_less("n10", "n2"));
  CHECK(node_less("n1", "n1a"));
  CHECK(node_less("rack1n9", "rack2n1"));
  CHECK(node_less("n01", "n001"));  // some order, and not both ways
  CHECK_FALSE(node_less("n001", "n01"));
  CHECK_FALSE(node_less("n1", "n1"));
}

TEST_CASE("many nodes are written as Slurm writes them") {
  CHECK(compress_nodes({"n3", "n1", "n2", "n7"}) == "n[1-3,7]");
  CHECK(compress_nodes({"n1"}) == "n1");
  CHECK(compress_nodes({}).empty());
  CHECK(compress_nodes({"n1", "n1", "n2"}) == "n[1-2]");
  CHECK(compress_nodes({"login", "n1", "m2", "n2"}) == "login,m2,n[1-2]");
  CHECK(compress_nodes({"a", "b"}) == "a,b");
  CHECK(compress_nodes({"n9", "n10", "n11"}) == "n[9,10-11]");
  CHECK(compress_nodes({"n09", "n10", "n11"}) == "n[09-11]");
}

TEST_CASE("a number too long to be one is part of the name") {
  CHECK(compress_nodes({"n12345678901234567890", "n12345678901234567891"}) ==
        "n12345678901234567890,n12345678901234567891");
}
