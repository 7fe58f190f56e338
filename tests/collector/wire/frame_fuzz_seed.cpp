// Writes what ./dev fuzz frame begins with into a folder: a body of each kind, and a shipment.
#include <fstream>

#include "collector/wire/frame.h"
#include "collector/wire/message.h"
#include "tests/collector/wire/frame_fuzz_input.h"
#include "tests/collector/wire/some_shipment.h"

using namespace sphase;

int main(int count, char** arguments) {
  if (count != 2) return 2;
  int number = 0;
  const auto write = [&](char kind, const std::string& bytes) {
    const std::string path = std::string(arguments[1]) + "/seed" + std::to_string(number++);
    std::ofstream(path, std::ios::binary) << kind << bytes;
  };
  const std::string nonce(kNonceBytes, 'n');
  write(0, frame_of(FrameType::kShip, "body"));
  write(1, body_of(Challenge{1, nonce}));
  write(2, body_of(Hello{nonce, nonce, "n1", "id", true}));
  write(3, body_of(Welcome{5, "MUNGE:x:"}));
  write(4, body_of(ClockTimes{1, 2, 3}));
  write(5, body_of(std::vector<RunName>{{"c", "0", "n1", 1, 0, 1000}}));
  write(6, body_of(std::vector<RunSeen>{{true, 5, 6, {1, 2, 3}}}));
  write(7, body_of(ShipHead{1, ClockOffset{5, 6}}));
  write(8, body_of(AdvicePart{true, "x"}));
  write(9, stored_body(300));
  Shipment shipment = testing::some_real_shipment();
  for (SealedRows& sealed : shipment.sealed) sealed.sealed_ns += 100;  // not those that are there
  const auto whole = body_of(ShipHead{1, {}}, shipment);
  if (!whole) return 1;
  std::string_view body = *whole;
  if (!parse_ship_head(body)) return 1;
  write(10, std::string(body));
  write(11, testing::fuzz_input(shipment));
  // Numbers where texts should be, which random changes hardly ever make.
  Segment phases = testing::some_phases(1);
  for (SegmentColumn& column : phases.columns) column = testing::repeated(column.name(), 9, 2);
  shipment.sealed[1].data = *encode_segment(phases);
  shipment.raw[1] = testing::of_first_run("phase", phases);
  write(11, testing::fuzz_input(shipment));
  return 0;
}
