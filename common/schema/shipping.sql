-- What is new in a node.db. In node.db since version 3.
-- Each commit of a recorder takes the next number from meta.change and writes it into its run: so
-- `change` orders the news of all runs of the node, and whoever knows everything up to a number asks
-- for larger ones. meta.id tells this file from one that was set aside, or made anew.
-- meta.shipped is the number up to which a collector has everything: its runs are given up first
-- when the file is at its size limit.
ALTER TABLE run ADD COLUMN change INTEGER NOT NULL DEFAULT 0;  -- 1; number of the last commit that changed the run; recorder
CREATE INDEX run_change ON run (change);
INSERT INTO meta VALUES ('id', lower(hex(randomblob(16))));
INSERT INTO meta VALUES ('change', '0');
