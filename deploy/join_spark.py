"""The command neupath as a program of Spark.

spark-submit --master yarn deploy/join_spark.py join --index URL --engine spark --out /shared/top.parquet
"""

from neupath.cli import main

main()
